#include "convert/container.h"

#include "core/alloc.h"
#include "core/hash.h"

#include <string.h>

typedef unsigned long long ull;

/* Where reading has come to. */
typedef struct reader {
    iso_container *container;
    const char *file;
    const uint8_t *records, *names;
    uint64_t names_bytes;
    uint64_t end;                    /* of the tensor or file before */
    const char *before;              /* its name, or "page 0" */
    iso_error *error;
} reader;

uint32_t iso_get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t iso_get_u64(const uint8_t *at)
{
    return iso_get_u32(at) | (uint64_t)iso_get_u32(at + 4) << 32;
}

void iso_put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void iso_put_u64(uint8_t *at, uint64_t value)
{
    iso_put_u32(at, (uint32_t)value);
    iso_put_u32(at + 4, (uint32_t)(value >> 32));
}

bool iso_container_is(const void *data, uint64_t bytes)
{
    return bytes >= 8 && memcmp(data, ISO_CONTAINER_MAGIC, 8) == 0;
}

static bool has_hash(const void *data, uint64_t bytes, const uint8_t *stated)
{
    uint64_t hash[2];

    iso_hash(data, (size_t)bytes, hash);
    return hash[0] == iso_get_u64(stated) && hash[1] == iso_get_u64(stated + 8);
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
    uint8_t any = 0;

    for (size_t i = 0; i < bytes; i++)
        any |= data[i];
    return any == 0;
}

/* ---- page 0 ---- */

static iso_status check_version(const reader *in, const uint8_t *page)
{
    const uint32_t major = iso_get_u32(page + ISO_PAGE_MAJOR);
    const uint32_t order = iso_get_u32(page + ISO_PAGE_ORDER);
    const uint32_t align = iso_get_u32(page + ISO_PAGE_ALIGN);

    if (order != ISO_CONTAINER_ORDER)
        return iso_fail(in->error, ISO_BAD_FILE, "%s: byte order mark %08x, expected %08x",
                        in->file, order, ISO_CONTAINER_ORDER);
    if (major != ISO_CONTAINER_MAJOR)
        return iso_fail(in->error, ISO_UNSUPPORTED, "%s: container version %u.%u, expected %d.x",
                        in->file, major, iso_get_u32(page + ISO_PAGE_MINOR), ISO_CONTAINER_MAJOR);
    if (!has_hash(page, ISO_PAGE_HASH, page + ISO_PAGE_HASH))
        return iso_fail(in->error, ISO_BAD_FILE, "%s: page 0 does not have its hash: it was "
                        "changed after it was written", in->file);
    if (align != ISO_CONTAINER_PAGE)
        return iso_fail(in->error, ISO_BAD_FILE, "%s: alignment %u, expected %d", in->file, align,
                        ISO_CONTAINER_PAGE);
    if (iso_get_u32(page + ISO_PAGE_MINOR) <= ISO_CONTAINER_MINOR
        && !is_zero(page + ISO_PAGE_RESERVED, ISO_PAGE_HASH - ISO_PAGE_RESERVED))
        return iso_fail(in->error, ISO_BAD_FILE, "%s: reserved bytes of page 0 are not zero",
                        in->file);
    return ISO_OK;
}

static iso_status check_contract(const reader *in, const uint8_t *page)
{
    static const char expected[ISO_CONTAINER_CONTRACT] = ISO_NUMERICS_ID;
    const char *found = (const char *)page + ISO_PAGE_CONTRACT;

    if (memcmp(found, expected, sizeof expected) != 0)
        return iso_fail(in->error, ISO_UNSUPPORTED, "%s: values prepared for contract %.*s, "
                        "expected %s: convert the checkpoint again", in->file,
                        ISO_CONTAINER_CONTRACT, found, expected);
    return ISO_OK;
}

static iso_status read_page(reader *in)
{
    iso_container *c = in->container;
    const uint8_t *page = c->data;
    uint64_t records, end;

    if (c->bytes < ISO_CONTAINER_PAGE || !iso_container_is(page, c->bytes))
        return iso_fail(in->error, ISO_BAD_FILE, "%s: neither a container nor a .safetensors "
                        "file: it does not begin with page 0", in->file);
    ISO_TRY(check_version(in, page));
    ISO_TRY(check_contract(in, page));
    if (iso_get_u64(page + ISO_PAGE_FILE_BYTES) != c->bytes)
        return iso_fail(in->error, ISO_BAD_FILE, "%s: %llu bytes, expected %llu", in->file,
                        (ull)c->bytes, (ull)iso_get_u64(page + ISO_PAGE_FILE_BYTES));
    c->directory = iso_get_u64(page + ISO_PAGE_DIRECTORY);
    c->directory_bytes = iso_get_u64(page + ISO_PAGE_DIRECTORY_BYTES);
    c->tensor_count = iso_get_u32(page + ISO_PAGE_TENSORS);
    c->file_count = iso_get_u32(page + ISO_PAGE_FILES);
    c->cleaned = iso_get_u64(page + ISO_PAGE_CLEANED);
    if (!iso_add_u64(c->directory, c->directory_bytes, &end) || end != c->bytes
        || c->directory < ISO_CONTAINER_PAGE)
        return iso_fail(in->error, ISO_BAD_FILE, "%s: directory at %llu, %llu bytes, expected to "
                        "end with the file at %llu", in->file, (ull)c->directory,
                        (ull)c->directory_bytes, (ull)c->bytes);
    if (c->tensor_count == 0 || c->tensor_count > ISO_CONTAINER_TENSORS_MAX
        || c->file_count > ISO_CONTAINER_FILES_MAX)
        return iso_fail(in->error, ISO_LIMIT, "%s: %u tensors and %u files, expected 1 to %d and "
                        "at most %d", in->file, c->tensor_count, c->file_count,
                        ISO_CONTAINER_TENSORS_MAX, ISO_CONTAINER_FILES_MAX);
    records = (uint64_t)c->tensor_count * ISO_CONTAINER_TENSOR_BYTES
            + (uint64_t)c->file_count * ISO_CONTAINER_FILE_BYTES;
    if (records > c->directory_bytes)
        return iso_fail(in->error, ISO_BAD_FILE, "%s: directory of %llu bytes, its records need "
                        "%llu", in->file, (ull)c->directory_bytes, (ull)records);
    in->records = c->data + c->directory;
    in->names = in->records + records;
    in->names_bytes = c->directory_bytes - records;
    if (!has_hash(in->records, c->directory_bytes, page + ISO_PAGE_DIRECTORY_HASH))
        return iso_fail(in->error, ISO_BAD_FILE, "%s: the directory does not have its hash: it "
                        "was changed after it was written", in->file);
    return ISO_OK;
}

/* ---- records ---- */

static iso_status read_name(const reader *in, const uint8_t *record, const char *what,
                            uint32_t index, const char **name)
{
    const uint64_t at = iso_get_u32(record), bytes = iso_get_u32(record + 4);

    if (bytes == 0 || bytes > ISO_CONTAINER_NAME_MAX)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s %u: name of %llu bytes, expected 1 to "
                        "%d", in->file, what, index, (ull)bytes, ISO_CONTAINER_NAME_MAX);
    if (at >= in->names_bytes || bytes >= in->names_bytes - at)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s %u: name at %llu of %llu bytes of "
                        "names", in->file, what, index, (ull)at, (ull)in->names_bytes);
    *name = (const char *)in->names + at;
    if (strnlen(*name, bytes + 1) != bytes)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s %u: name without its end", in->file,
                        what, index);
    return ISO_OK;
}

/* [offset, +bytes) follows what came before: directly, or at the next multiple of the page. */
static iso_status check_place(reader *in, const char *name, uint64_t offset, uint64_t bytes,
                              bool continues)
{
    const uint64_t limit = in->container->directory;
    const uint64_t expected = continues ? in->end : iso_align_up(in->end, ISO_CONTAINER_PAGE);

    if (offset > limit || bytes > limit - offset)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: %llu bytes at %llu, but the payload "
                        "ends at %llu", in->file, name, (ull)bytes, (ull)offset, (ull)limit);
    if (offset < in->end)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: bytes at %llu overlap %s, which ends "
                        "at %llu", in->file, name, (ull)offset, in->before, (ull)in->end);
    if (!continues && offset % ISO_CONTAINER_PAGE != 0)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: bytes at %llu, expected a multiple of "
                        "%d", in->file, name, (ull)offset, ISO_CONTAINER_PAGE);
    if (offset != expected)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: bytes at %llu leave a hole behind %s, "
                        "expected %llu", in->file, name, (ull)offset, in->before, (ull)expected);
    in->end = offset + bytes;
    in->before = name;
    return ISO_OK;
}

iso_status iso_container_tensor_bytes(const iso_container_tensor *tensor, uint64_t *bytes,
                                      iso_error *error)
{
    iso_tensor_desc desc = tensor->desc;
    iso_status status;

    if (desc.rank == 0) {                /* a scalar: [1], except that it cannot be packed */
        if (desc.layout != ISO_LAYOUT_PLAIN || desc.extent[0] != 1)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: rank 0 with layout %s and extent %lld, "
                            "expected plain and 1", tensor->name, iso_layout_name(desc.layout),
                            (long long)desc.extent[0]);
        desc.rank = 1;
    }
    status = iso_desc_check(&desc, tensor->name, error);
    if (status != ISO_OK) {
        if (error != NULL)
            error->status = ISO_BAD_TENSOR;
        return ISO_BAD_TENSOR;
    }
    *bytes = iso_desc_bytes(&desc);
    return ISO_OK;
}

/* A word of at most 8 bytes, filled up with NULs. */
static const char *word_of(const uint8_t *at, char word[ISO_CONTAINER_WORD + 1])
{
    memcpy(word, at, ISO_CONTAINER_WORD);
    word[ISO_CONTAINER_WORD] = '\0';
    return word;
}

static iso_status read_desc(const reader *in, const uint8_t *record, iso_container_tensor *t)
{
    char word[ISO_CONTAINER_WORD + 1];

    t->desc.dtype = iso_dtype_of_name(word_of(record + ISO_RECORD_DTYPE, word));
    if (t->desc.dtype == ISO_DTYPE_NONE)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: unknown dtype \"%s\"", in->file,
                        t->name, word);
    t->desc.layout = iso_layout_of_name(word_of(record + ISO_RECORD_LAYOUT, word));
    if (t->desc.layout == ISO_LAYOUT_COUNT)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: unknown layout \"%s\"", in->file,
                        t->name, word);
    t->desc.rank = iso_get_u32(record + ISO_RECORD_RANK);
    if (t->desc.rank > ISO_RANK_MAX)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: rank %u, expected at most %d",
                        in->file, t->name, t->desc.rank, ISO_RANK_MAX);
    for (uint32_t i = 0; i < ISO_RANK_MAX; i++)
        t->desc.extent[i] = (int64_t)iso_get_u64(record + ISO_RECORD_EXTENT + 8 * i);
    return ISO_OK;
}

/* A tensor that continues another is the next of a list of equals. */
static iso_status check_flags(const reader *in, const iso_container_tensor *t, uint32_t index)
{
    if ((t->flags & ~(uint32_t)ISO_RECORD_CONTINUES) != 0)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: unknown flags %08x", in->file,
                        t->name, t->flags);
    if ((t->flags & ISO_RECORD_CONTINUES) == 0)
        return ISO_OK;
    if (index == 0 || !iso_desc_equal(&t->desc, &t[-1].desc))
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: continues %s, which is no tensor of "
                        "its dtype, shape and layout", in->file, t->name, in->before);
    return ISO_OK;
}

static iso_status read_tensor(reader *in, const uint8_t *record, uint32_t index)
{
    iso_container_tensor *t = &in->container->tensors[index];
    uint64_t bytes;
    iso_status status;

    ISO_TRY(read_name(in, record, "tensor", index, &t->name));
    ISO_TRY(read_desc(in, record, t));
    t->flags = iso_get_u32(record + ISO_RECORD_FLAGS);
    t->offset = iso_get_u64(record + ISO_RECORD_OFFSET);
    t->bytes = iso_get_u64(record + ISO_RECORD_BYTES);
    t->cleaned = iso_get_u64(record + ISO_RECORD_CLEANED);
    t->hash[0] = iso_get_u64(record + ISO_RECORD_HASH);
    t->hash[1] = iso_get_u64(record + ISO_RECORD_HASH + 8);
    status = iso_container_tensor_bytes(t, &bytes, in->error);
    if (status != ISO_OK)
        return iso_fail_in(in->error, status, "%s", in->file);
    if (bytes != t->bytes)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: %llu bytes, expected %llu for its "
                        "dtype, shape and layout", in->file, t->name, (ull)t->bytes, (ull)bytes);
    if (iso_get_u64(record + ISO_RECORD_RESERVED) != 0)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: reserved bytes are not zero",
                        in->file, t->name);
    ISO_TRY(check_flags(in, t, index));
    return check_place(in, t->name, t->offset, t->bytes, t->flags != 0);
}

static iso_status read_file(reader *in, const uint8_t *record, uint32_t index)
{
    iso_container_text *f = &in->container->files[index];

    ISO_TRY(read_name(in, record, "file", index, &f->name));
    f->offset = iso_get_u64(record + ISO_FILE_OFFSET);
    f->bytes = iso_get_u64(record + ISO_FILE_BYTES);
    f->hash[0] = iso_get_u64(record + ISO_FILE_HASH);
    f->hash[1] = iso_get_u64(record + ISO_FILE_HASH + 8);
    if (iso_get_u64(record + ISO_FILE_RESERVED) != 0)
        return iso_fail(in->error, ISO_BAD_TENSOR, "%s: %s: reserved bytes are not zero",
                        in->file, f->name);
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(in->container->files[i].name, f->name) == 0)
            return iso_fail(in->error, ISO_BAD_TENSOR, "%s: file %s is there twice", in->file,
                            f->name);
    return check_place(in, f->name, f->offset, f->bytes, false);
}

static iso_status read_all(reader *in)
{
    iso_container *c = in->container;
    const uint8_t *record;

    ISO_TRY(read_page(in));
    c->tensors = iso_alloc_zero(c->tensor_count, sizeof *c->tensors, "container.tensors");
    c->files = iso_alloc_zero(c->file_count, sizeof *c->files, "container.files");
    if (c->tensors == NULL || (c->files == NULL && c->file_count != 0))
        return iso_fail(in->error, ISO_NO_MEMORY, "%s: out of memory for %u tensors", in->file,
                        c->tensor_count);
    in->end = ISO_CONTAINER_PAGE;
    in->before = "page 0";
    record = in->records;
    for (uint32_t i = 0; i < c->tensor_count; i++, record += ISO_CONTAINER_TENSOR_BYTES)
        ISO_TRY(read_tensor(in, record, i));
    for (uint32_t i = 0; i < c->file_count; i++, record += ISO_CONTAINER_FILE_BYTES)
        ISO_TRY(read_file(in, record, i));
    if (c->directory != iso_align_up(in->end, ISO_CONTAINER_PAGE))
        return iso_fail(in->error, ISO_BAD_FILE, "%s: directory at %llu, expected at %llu, behind "
                        "%s", in->file, (ull)c->directory,
                        (ull)iso_align_up(in->end, ISO_CONTAINER_PAGE), in->before);
    return ISO_OK;
}

iso_status iso_container_read(const void *data, uint64_t bytes, const char *file,
                              iso_container *container, iso_error *error)
{
    iso_container made = {.data = data, .bytes = bytes};
    reader in = {.container = &made, .file = file, .error = error};
    const iso_status status = read_all(&in);

    if (status != ISO_OK)
        iso_container_free(&made);
    else
        *container = made;
    return status;
}

void iso_container_free(iso_container *container)
{
    if (container->tensors != NULL)
        iso_release(container->tensors, container->tensor_count * sizeof *container->tensors);
    if (container->files != NULL)
        iso_release(container->files, container->file_count * sizeof *container->files);
    container->tensors = NULL;
    container->files = NULL;
    container->tensor_count = container->file_count = 0;
}
