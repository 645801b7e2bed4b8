/* Runs through a backend: the operands travel by COPY steps between pinned staging memory and
 * device buffers, guard zones included, so the same code tests every backend. */
#include "tests/check/check.h"

#include "core/alloc.h"
#include "core/backends.h"

typedef struct memory {
    iso_buffer *buffer;
    uint64_t capacity;
    unsigned char *host;             /* of pinned memory */
} memory;

struct check_device {
    const iso_backend *backend;
    iso_device *device;
    iso_stream *stream;
    iso_event *event;
    memory operand[ISO_FUSION_PARTS_MAX][CHECK_OPERANDS_MAX];
    memory upload, download;
    uint64_t value;                  /* of the event */
    bool is_serial;                  /* one thread: steps tell their true, small size */
};

/* ---- resources ---- */

static bool reserve(check_device *d, memory *m, iso_memory_kind kind, uint64_t bytes,
                    iso_error *error)
{
    const iso_buffer_spec spec = {kind, bytes, 0, "check"};
    void *host = NULL;

    if (m->capacity >= bytes)
        return true;
    d->backend->buffer_destroy(&m->buffer);
    m->capacity = 0;
    if (d->backend->buffer_create(d->device, &spec, &m->buffer, error) != ISO_OK)
        return false;
    m->capacity = bytes;
    if (kind != ISO_MEMORY_PINNED)
        return true;
    if (d->backend->buffer_map(m->buffer, &host, error) != ISO_OK)
        return false;
    m->host = host;
    return true;
}

check_device *check_device_open(const char *name, uint32_t threads, char text[CHECK_TEXT])
{
    const iso_backend_options options = {.thread_count = threads};
    check_device *d = iso_alloc_zero(1, sizeof *d, "check device");
    iso_error error = {0};

    ISO_ASSERT(d != NULL);
    d->is_serial = threads == 1;
    if (iso_backend_open_device(name, &options, &d->backend, &d->device, &error) == ISO_OK
        && d->backend->stream_create(d->device, ISO_STREAM_COMPUTE, &d->stream, &error) == ISO_OK
        && d->backend->event_create(d->device, &d->event, &error) == ISO_OK)
        return d;
    snprintf(text, CHECK_TEXT, "%s", error.text);
    check_device_close(&d);
    return NULL;
}

void check_device_close(check_device **device)
{
    check_device *d = *device;

    if (d == NULL)
        return;
    if (d->device != NULL) {
        for (uint32_t p = 0; p < ISO_FUSION_PARTS_MAX; p++)
            for (uint32_t i = 0; i < CHECK_OPERANDS_MAX; i++)
                d->backend->buffer_destroy(&d->operand[p][i].buffer);
        d->backend->buffer_destroy(&d->upload.buffer);
        d->backend->buffer_destroy(&d->download.buffer);
        d->backend->event_destroy(&d->event);
        d->backend->stream_destroy(&d->stream);
        d->backend->close(&d->device);
    }
    iso_release(d, sizeof *d);
    *device = NULL;
}

bool check_device_query(check_device *d, const check_subject *s, iso_support *support,
                        char text[CHECK_TEXT])
{
    d->backend->query(d->device, &s->call, ISO_CLASS_EXACT, support);
    if (support->ok)
        return true;
    snprintf(text, CHECK_TEXT, "refused: %s%s%s", iso_reason_text(support->reason),
             support->text[0] != '\0' ? ": " : "", support->text);
    return false;
}

bool check_device_query_fused(check_device *d, const iso_fused_call *call, iso_support *support)
{
    *support = (iso_support){.reason = ISO_REASON_NO_KERNEL};
    if (d->backend->query_fused != NULL)
        d->backend->query_fused(d->device, call, ISO_CLASS_EXACT, support);
    return support->ok;
}

/* ---- layout: margin, operand, margin; the same in staging, operand after operand ---- */

static uint64_t blob_bytes(const check_operand *operand)
{
    return iso_align_up(operand->bytes, 64) + 2 * CHECK_MARGIN;
}

static bool has_blob(const check_operand *operand)
{
    return operand->role != CHECK_ABSENT && operand->role != CHECK_ALIAS
        && operand->role != CHECK_LINK;
}

/* All operands of a group that have memory of their own. */
typedef struct blob {
    const check_operand *operand;
    memory *memory;
    uint32_t part, index;
    uint64_t offset;                 /* in staging */
} blob;

typedef struct blob_list {
    blob at[ISO_FUSION_PARTS_MAX * CHECK_OPERANDS_MAX];
    uint32_t count;
    uint64_t bytes;
} blob_list;

static blob_list list_blobs(check_device *d, const check_group *group)
{
    blob_list list = {.count = 0};

    for (uint32_t p = 0; p < group->part_count; p++)
        for (uint32_t i = 0; i < group->part[p]->operand_count; i++) {
            const check_operand *operand = &group->part[p]->operand[i];

            if (!has_blob(operand))
                continue;
            list.at[list.count++] = (blob){operand, &d->operand[p][i], p, i, list.bytes};
            list.bytes += blob_bytes(operand);
        }
    return list;
}

static bool reserve_all(check_device *d, const blob_list *list, char text[CHECK_TEXT])
{
    iso_error error = {0};
    bool done = true;

    for (uint32_t i = 0; i < list->count && done; i++)
        done = reserve(d, list->at[i].memory, ISO_MEMORY_DEVICE, blob_bytes(list->at[i].operand),
                       &error);
    done = done && reserve(d, &d->upload, ISO_MEMORY_PINNED, list->bytes + 1, &error)
        && reserve(d, &d->download, ISO_MEMORY_PINNED, list->bytes + 1, &error);
    if (!done)
        snprintf(text, CHECK_TEXT, "%s", error.text);
    return done;
}

/* ---- the program ---- */

typedef struct step_list {
    iso_step step[2 * ISO_FUSION_PARTS_MAX * CHECK_OPERANDS_MAX + 2];
    uint32_t count;
    iso_step part[ISO_FUSION_PARTS_MAX];
} step_list;

static void add_copy(step_list *list, iso_buffer *from, uint64_t from_offset, iso_buffer *to,
                     uint64_t to_offset, uint64_t bytes)
{
    iso_step *step = &list->step[list->count++];

    *step = (iso_step){.kind = ISO_STEP_COPY, .name = "check copy", .tensor_count = 2,
                       .bytes = bytes};
    step->tensor[0] = (iso_slice){from, from_offset};
    step->tensor[1] = (iso_slice){to, to_offset};
    step->present[0] = step->present[1] = true;
}

static void add_copies(step_list *list, const check_device *d, const blob_list *blobs,
                       bool is_upload)
{
    for (uint32_t i = 0; i < blobs->count; i++) {
        const blob *b = &blobs->at[i];

        if (is_upload)
            add_copy(list, d->upload.buffer, b->offset, b->memory->buffer, 0,
                     blob_bytes(b->operand));
        else
            add_copy(list, b->memory->buffer, 0, d->download.buffer, b->offset,
                     blob_bytes(b->operand));
    }
}

/* Part p of the group as a step of its own. */
static iso_step op_step(const check_device *d, const check_group *group, uint32_t p)
{
    const check_subject *s = group->part[p];
    iso_step step = {.kind = ISO_STEP_OP, .name = s->test->name, .op = s->call.op,
                     .kernel_index = group->kernel[p], .tensor_count = s->operand_count};

    memcpy(step.args, s->args, sizeof step.args);
    for (uint32_t i = 0; i < s->operand_count; i++) {
        const check_role role = s->operand[i].role;
        const memory *from = &d->operand[p][role == CHECK_ALIAS ? 0 : i];

        if (role == CHECK_LINK) {
            const iso_fused_link link = group->link[p][i];
            const check_subject *maker = group->part[link.part - 1];

            from = &d->operand[link.part - 1][maker->call.op->input_count + link.output];
        }
        step.present[i] = role != CHECK_ABSENT;
        step.tensor[i] = (iso_slice){from->buffer, CHECK_MARGIN};
        step.bytes += s->operand[i].bytes;
    }
    return step;
}

static void add_group(step_list *list, const check_device *d, const check_group *group)
{
    iso_step *step = &list->step[list->count++];

    if (group->fusion == NULL) {
        *step = op_step(d, group, 0);
    } else {
        *step = (iso_step){.kind = ISO_STEP_FUSED, .name = group->part[0]->test->name,
                           .fusion = group->fusion, .parts = list->part,
                           .kernel_index = group->fused_kernel};
        for (uint32_t p = 0; p < group->part_count; p++) {
            list->part[p] = op_step(d, group, p);
            step->bytes += list->part[p].bytes;
        }
    }
    if (!d->is_serial)
        step->bytes += 1 << 22;      /* an upper bound: one row is cut, and wakes the team */
}

/* ---- one launch ---- */

/* Round 2 starts with the outputs of an earlier run: what was left there must not matter. */
static void prepare_upload(const check_device *d, const blob_list *blobs, uint32_t round)
{
    for (uint32_t i = 0; i < blobs->count; i++) {
        const check_operand *operand = blobs->at[i].operand;
        unsigned char *at = (unsigned char *)d->upload.host + blobs->at[i].offset;

        memset(at, CHECK_MARGIN_BYTE, (size_t)blob_bytes(operand));
        if (operand->value != NULL)
            memcpy(at + CHECK_MARGIN, operand->value, (size_t)operand->bytes);
        else
            check_poison(at + CHECK_MARGIN, operand->bytes, round % 2);
        if (operand->role == CHECK_OUTPUT && round == 2)
            memcpy(at + CHECK_MARGIN, operand->expected, (size_t)operand->live_bytes);
    }
}

static bool verify_download(const check_device *d, const check_group *group,
                            const blob_list *blobs, const check_trial *trial,
                            char text[CHECK_TEXT])
{
    for (uint32_t p = 0; p < group->part_count; p++) {
        check_trial mine = *trial;

        for (uint32_t i = 0; i < blobs->count; i++)
            if (blobs->at[i].part == p)
                mine.at[blobs->at[i].index] =
                    d->download.host + blobs->at[i].offset + CHECK_MARGIN;
        if (!check_verify(group->part[p], &mine, text))
            return false;
    }
    for (uint32_t i = 0; i < blobs->count; i++) {
        const blob *b = &blobs->at[i];
        const unsigned char *at = d->download.host + b->offset + CHECK_MARGIN;

        if (!check_verify_margin(group->part[b->part], b->index, at - CHECK_MARGIN, "before",
                                 text)
            || !check_verify_margin(group->part[b->part], b->index, at + b->operand->bytes,
                                    "behind", text))
            return false;
    }
    return true;
}

/* The flags that a status stands for; both together are reported as an index. */
static uint32_t flags_of(iso_status status, uint32_t expected)
{
    if (status == ISO_BAD_INDEX)
        return (expected & ISO_FLAG_INDEX) != 0 ? expected : ISO_FLAG_INDEX;
    return status == ISO_RANGE_ERROR ? ISO_FLAG_RANGE : 0;
}

static bool launch(check_device *d, const check_group *group, const blob_list *blobs,
                   iso_program *program, uint32_t round, char text[CHECK_TEXT])
{
    static const char *const names[] = {"launch 1", "launch 2", "launch 3, old outputs"};
    const check_subject *s = group->part[0];
    const iso_launch run = {.epoch = d->value++, .block = s->block, .block_bytes = sizeof s->block};
    check_trial trial = {.pattern = round % 2};
    iso_error error = {0};
    iso_status status;

    check_now.variant = names[round];
    prepare_upload(d, blobs, round);
    memset(d->download.host, 0x11, (size_t)d->download.capacity);
    status = d->backend->launch(program, d->stream, &run, &error);
    if (status == ISO_OK)
        status = d->backend->event_wait(d->event, d->value, UINT64_MAX, &error);
    trial.flags = flags_of(status, group->flags_expected);
    if (status != ISO_OK && trial.flags == 0) {
        snprintf(text, CHECK_TEXT, "%s", error.text);
        return false;
    }
    return verify_download(d, group, blobs, &trial, text);
}

bool check_group_on_device(check_device *d, const check_group *group, uint32_t rounds,
                           uint64_t *comparisons, char text[CHECK_TEXT])
{
    const blob_list blobs = list_blobs(d, group);
    static step_list list;
    iso_program *program = NULL;
    iso_error error = {0};
    bool is_right = true;

    check_now.variant = "record";
    if (!reserve_all(d, &blobs, text))
        return false;
    list.count = 0;
    add_copies(&list, d, &blobs, true);
    add_group(&list, d, group);
    add_copies(&list, d, &blobs, false);
    list.step[list.count++] = (iso_step){.kind = ISO_STEP_SIGNAL, .name = "check end",
                                         .event = d->event, .event_value = 1};
    if (d->backend->record(d->device, list.step, list.count, sizeof group->part[0]->block,
                           &program, &error) != ISO_OK) {
        snprintf(text, CHECK_TEXT, "%s", error.text);
        return false;
    }
    for (uint32_t round = 0; round < rounds && is_right; round++) {
        ++*comparisons;
        is_right = launch(d, group, &blobs, program, round, text);
    }
    d->backend->program_destroy(&program);
    return is_right;
}

bool check_on_device(check_device *d, const check_subject *s, uint32_t kernel_index,
                     uint32_t rounds, uint64_t *comparisons, char text[CHECK_TEXT])
{
    const check_group group = {.part = {s}, .part_count = 1, .kernel = {kernel_index},
                               .flags_expected = s->test->flags_expected};

    return check_group_on_device(d, &group, rounds, comparisons, text);
}
