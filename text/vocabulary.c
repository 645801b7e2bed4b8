#include "core/alloc.h"
#include "text/alphabet.h"
#include "text/string_map.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <string.h>

#define VOCAB "model.vocab"

/* What is needed while loading only. The arrays have one element per possible id; names are lent
 * by the JSON document. */
typedef struct loading {
    iso_tokenizer *tokenizer;
    const iso_json *vocab, *merges, *added;
    size_t ids_max;          /* entries of vocab and of added_tokens together */
    size_t ids_found;
    const char **names;      /* [ids_max]; NULL: no such id yet */
    uint32_t *name_bytes;
    uint8_t *is_added;       /* 0: base; 1: added, verbatim; 2: added, normalized */
    iso_string_map ids;      /* name -> id */
    iso_error *error;
} loading;

static iso_status loading_init(loading *l, const iso_json *root)
{
    const iso_json *model = iso_json_get(root, "model");

    l->vocab = iso_json_get(model, "vocab");
    l->merges = iso_json_get(model, "merges");
    l->added = iso_json_get(root, "added_tokens");
    if (iso_json_type_of(l->vocab) != ISO_JSON_OBJECT)
        return iso_fail(l->error, ISO_BAD_TOKENIZER, VOCAB ": an object expected, %s found",
                        iso_json_type_name(iso_json_type_of(l->vocab)));
    if (iso_json_type_of(l->merges) != ISO_JSON_ARRAY)
        return iso_fail(l->error, ISO_BAD_TOKENIZER, "model.merges: an array expected, %s found",
                        iso_json_type_name(iso_json_type_of(l->merges)));
    if (l->added != NULL && iso_json_type_of(l->added) != ISO_JSON_ARRAY)
        return iso_fail(l->error, ISO_BAD_TOKENIZER, "added_tokens: an array expected, %s found",
                        iso_json_type_name(iso_json_type_of(l->added)));
    l->ids_max = iso_json_size(l->vocab) + iso_json_size(l->added);
    if (l->ids_max > ISO_TOKENIZER_IDS_MAX || iso_json_size(l->merges) > ISO_TOKENIZER_IDS_MAX)
        return iso_fail(l->error, ISO_LIMIT,
                        VOCAB ", model.merges: at most %zu entries expected, %zu and %zu found",
                        ISO_TOKENIZER_IDS_MAX, l->ids_max, iso_json_size(l->merges));
    l->names = iso_alloc_zero(l->ids_max + 1, sizeof *l->names, "vocabulary");
    l->name_bytes = iso_alloc_zero(l->ids_max + 1, sizeof *l->name_bytes, "vocabulary");
    l->is_added = iso_alloc_zero(l->ids_max + 1, sizeof *l->is_added, "vocabulary");
    if (l->names == NULL || l->name_bytes == NULL || l->is_added == NULL ||
        !iso_string_map_init(&l->ids, l->ids_max))
        return iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
    return ISO_OK;
}

static void loading_deinit(loading *l)
{
    iso_release(l->names, (l->ids_max + 1) * sizeof *l->names);
    iso_release(l->name_bytes, (l->ids_max + 1) * sizeof *l->name_bytes);
    iso_release(l->is_added, (l->ids_max + 1) * sizeof *l->is_added);
    iso_string_map_deinit(&l->ids);
}

/* Gives `name` the id, unless the id is taken or can belong to no dense numbering. */
static iso_status claim(loading *l, const char *where, const char *name, size_t bytes, int64_t id)
{
    if (id < 0 || (uint64_t)id >= l->ids_max)
        return iso_fail(l->error, ISO_BAD_TOKENIZER,
                        "%s: id of \"%s\": 0..%zu expected, %lld found", where, name,
                        l->ids_max - 1, (long long)id);
    if (l->names[id] != NULL)
        return iso_fail(l->error, ISO_BAD_TOKENIZER, "%s: id %lld is given to \"%s\" and \"%s\"",
                        where, (long long)id, l->names[id], name);
    l->names[id] = name;
    l->name_bytes[id] = (uint32_t)bytes; /* the file has at most 64 MiB */
    l->ids_found++;
    return ISO_OK;
}

static iso_status read_vocab(loading *l)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *name;
    int64_t id;

    while (iso_json_next(l->vocab, &cursor, &name, &value)) {
        const size_t bytes = strlen(name);

        if (!iso_json_int(value, &id))
            return iso_fail(l->error, ISO_BAD_TOKENIZER,
                            VOCAB ": id of \"%s\": an integer expected, %s found", name,
                            iso_json_type_name(iso_json_type_of(value)));
        ISO_TRY(claim(l, VOCAB, name, bytes, id));
        iso_string_map_insert(&l->ids, name, bytes, (uint32_t)id);
    }
    return ISO_OK;
}

static iso_status create_bpe(loading *l)
{
    int32_t byte_ids[256];
    iso_chars name = {0};
    iso_status status = ISO_OK;

    for (unsigned byte = 0; byte < 256 && status == ISO_OK; byte++) {
        uint32_t id = 0;

        name.used = 0;
        iso_utf8_add(&name, iso_alphabet_code((uint8_t)byte));
        if (name.failed)
            status = iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
        else if (!iso_string_map_find(&l->ids, name.data, name.used, &id))
            status = iso_fail(l->error, ISO_BAD_TOKENIZER,
                              VOCAB ": an entry for each byte expected, byte 0x%02x (\"%.*s\") is "
                                    "missing",
                              byte, (int)name.used, name.data);
        byte_ids[byte] = (int32_t)id;
    }
    iso_chars_deinit(&name);
    if (status != ISO_OK)
        return status;
    return iso_bpe_create(byte_ids, iso_json_size(l->merges), &l->tokenizer->bpe, l->error);
}

typedef struct text_part {
    const char *data;
    size_t bytes;
} text_part;

/* "left right" or ["left", "right"]; false for anything else. */
static bool split_merge(const iso_json *merge, text_part part[2])
{
    const char *line, *space;
    size_t bytes = 0;

    if (iso_json_type_of(merge) == ISO_JSON_ARRAY && iso_json_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++)
            part[i].data = iso_json_string(iso_json_at(merge, i), &part[i].bytes);
        return part[0].data != NULL && part[1].data != NULL;
    }
    line = iso_json_string(merge, &bytes);
    space = line == NULL ? NULL : memchr(line, ' ', bytes);
    if (space == NULL)
        return false;
    part[0] = (text_part){line, (size_t)(space - line)};
    part[1] = (text_part){space + 1, bytes - part[0].bytes - 1};
    return memchr(part[1].data, ' ', part[1].bytes) == NULL;
}

static iso_status read_merge(loading *l, size_t rank, iso_chars *joined)
{
    text_part part[2] = {{NULL, 0}, {NULL, 0}};
    uint32_t id[3];

    if (!split_merge(iso_json_at(l->merges, rank), part))
        return iso_fail(l->error, ISO_BAD_TOKENIZER,
                        "model.merges[%zu]: \"left right\" or [left, right] expected", rank);
    joined->used = 0;
    iso_chars_add(joined, part[0].data, part[0].bytes);
    iso_chars_add(joined, part[1].data, part[1].bytes);
    if (joined->failed)
        return iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
    for (size_t i = 0; i < 3; i++) {
        const char *name = i < 2 ? part[i].data : joined->data;
        const size_t bytes = i < 2 ? part[i].bytes : joined->used;

        if (bytes == 0 || !iso_string_map_find(&l->ids, name, bytes, &id[i]))
            return iso_fail(l->error, ISO_BAD_TOKENIZER,
                            "model.merges[%zu]: \"%.*s\" expected in " VOCAB ", not found", rank,
                            (int)(bytes < 200 ? bytes : 200), bytes == 0 ? "" : name);
    }
    if (!iso_bpe_add(l->tokenizer->bpe, (uint32_t)rank, (int32_t)id[0], (int32_t)id[1],
                     (int32_t)id[2]))
        return iso_fail(l->error, ISO_BAD_TOKENIZER, "model.merges[%zu]: the pair is listed twice",
                        rank);
    return ISO_OK;
}

static iso_status read_merges(loading *l)
{
    const size_t count = iso_json_size(l->merges);
    iso_chars joined = {0};
    iso_status status = ISO_OK;

    for (size_t rank = 0; rank < count && status == ISO_OK; rank++)
        status = read_merge(l, rank, &joined);
    iso_chars_deinit(&joined);
    return status;
}

/* Options that would let a token match elsewhere than where its text stands. */
static iso_status check_added_flags(const loading *l, const iso_json *token, size_t index)
{
    static const char *const keys[] = {"single_word", "lstrip", "rstrip"};

    for (size_t i = 0; i < ISO_COUNT_OF(keys); i++) {
        const iso_json *value = iso_json_get(token, keys[i]);
        bool flag = false;

        if (value != NULL && (!iso_json_bool(value, &flag) || flag))
            return iso_fail(l->error, ISO_BAD_TOKENIZER, "added_tokens[%zu].%s: false expected",
                            index, keys[i]);
    }
    return ISO_OK;
}

static iso_status read_added_token(loading *l, size_t index)
{
    const iso_json *token = iso_json_at(l->added, index);
    size_t bytes = 0;
    const char *text = iso_json_string(iso_json_get(token, "content"), &bytes);
    bool normalized = false, special = false;
    int64_t id = -1;
    uint32_t holder;

    if (text == NULL || bytes == 0 || !iso_json_int(iso_json_get(token, "id"), &id))
        return iso_fail(l->error, ISO_BAD_TOKENIZER,
                        "added_tokens[%zu]: a text \"content\" and an integer \"id\" expected",
                        index);
    if (!iso_json_bool(iso_json_get(token, "normalized"), &normalized) ||
        !iso_json_bool(iso_json_get(token, "special"), &special))
        return iso_fail(l->error, ISO_BAD_TOKENIZER,
                        "added_tokens[%zu]: true or false expected for \"normalized\" and "
                        "\"special\"",
                        index);
    ISO_TRY(check_added_flags(l, token, index));
    if (iso_string_map_find(&l->ids, text, bytes, &holder)) {
        if (holder != (uint64_t)id || l->is_added[holder] != 0)
            return iso_fail(l->error, ISO_BAD_TOKENIZER,
                            "added_tokens[%zu].id: \"%s\" has id %u already, %lld found", index,
                            text, (unsigned)holder, (long long)id);
    } else {
        ISO_TRY(claim(l, "added_tokens", text, bytes, id));
        iso_string_map_insert(&l->ids, text, bytes, (uint32_t)id);
    }
    l->is_added[id] = normalized ? 2 : 1;
    return ISO_OK;
}

static iso_status read_added(loading *l)
{
    for (size_t i = 0; i < iso_json_size(l->added); i++)
        ISO_TRY(read_added_token(l, i));
    for (size_t id = 0; id < l->ids_found; id++)
        if (l->names[id] == NULL)
            return iso_fail(l->error, ISO_BAD_TOKENIZER,
                            VOCAB ": ids 0..%zu expected, id %zu is missing", l->ids_found - 1,
                            id);
    return ISO_OK;
}

/* Appends the bytes that an id stands for; false if its name leaves the byte alphabet. */
static bool add_bytes(const loading *l, size_t id, iso_chars *out)
{
    const char *name = l->names[id];
    size_t taken;

    if (l->is_added[id] != 0) {
        iso_chars_add(out, name, l->name_bytes[id]);
        return true;
    }
    for (size_t i = 0; i < l->name_bytes[id]; i += taken) {
        uint32_t code = 0;
        int byte = -1;

        if (iso_utf8_next(name + i, l->name_bytes[id] - i, &code, &taken) == ISO_UTF8_CHAR)
            byte = iso_alphabet_byte(code);
        if (byte < 0)
            return false;
        iso_chars_add(out, &(char){(char)byte}, 1);
    }
    return l->name_bytes[id] != 0;
}

/* Moves names into the tokenizer: one block of bytes and a start for each id. */
static iso_status keep_names(loading *l)
{
    iso_tokenizer *t = l->tokenizer;
    iso_chars all = {0};

    t->vocab_size = l->ids_found;
    t->starts = iso_alloc_zero(t->vocab_size + 1, sizeof *t->starts, "vocabulary");
    t->is_added = iso_alloc_zero(t->vocab_size, sizeof *t->is_added, "vocabulary");
    if (t->starts == NULL || t->is_added == NULL)
        return iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
    for (size_t id = 0; id < t->vocab_size; id++) {
        if (!add_bytes(l, id, &all)) {
            iso_chars_deinit(&all);
            return iso_fail(l->error, ISO_BAD_TOKENIZER,
                            VOCAB ": id %zu: \"%s\" is not spelled in the byte alphabet", id,
                            l->names[id]);
        }
        t->starts[id + 1] = (uint32_t)all.used; /* the file has at most 64 MiB */
        t->is_added[id] = l->is_added[id] != 0;
    }
    t->bytes = all.data;
    t->bytes_total = all.capacity;
    if (all.failed)
        return iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
    return ISO_OK;
}

/* Makes the set of the added tokens of one kind. */
static iso_status keep_added(loading *l, uint8_t kind, iso_added **added)
{
    const size_t count_max = iso_json_size(l->added) + 1;
    iso_added_token *tokens = iso_alloc_zero(count_max, sizeof *tokens, "vocabulary");
    size_t count = 0;
    iso_status status;

    if (tokens == NULL)
        return iso_fail(l->error, ISO_NO_MEMORY, "vocabulary: out of memory");
    for (size_t id = 0; id < l->ids_found; id++) {
        const char *text = l->tokenizer->bytes + l->tokenizer->starts[id];

        if (l->is_added[id] == kind)
            tokens[count++] = (iso_added_token){text, l->name_bytes[id], (int32_t)id};
    }
    status = iso_added_create(tokens, count, added, l->error);
    iso_release(tokens, count_max * sizeof *tokens);
    return status;
}

iso_status iso_tokenizer_read_vocabulary(iso_tokenizer *tokenizer, const iso_json *root,
                                         iso_error *error)
{
    loading l = {.tokenizer = tokenizer, .error = error};
    iso_status status;

    ISO_GOTO(loading_init(&l, root));
    ISO_GOTO(read_vocab(&l));
    ISO_GOTO(create_bpe(&l));
    /* Before the added tokens join the names: a merge may speak of the base vocabulary only. */
    ISO_GOTO(read_merges(&l));
    ISO_GOTO(read_added(&l));
    ISO_GOTO(keep_names(&l));
    ISO_GOTO(keep_added(&l, 1, &tokenizer->verbatim));
    ISO_GOTO(keep_added(&l, 2, &tokenizer->normalized));
done:
    loading_deinit(&l);
    return status;
}
