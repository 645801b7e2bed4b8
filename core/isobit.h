/* isobit: same model, same bits, any device.
 *
 * The one public header of libisobit. It declares nouns and no tensors:
 *
 *   iso_store      an open checkpoint: a directory or a container (files mapped read-only)
 *   iso_model      configuration and weight directory of a store, validated, immutable
 *   iso_tokenizer  text <-> token ids; the Engram token map
 *   iso_engine     a model on a device: weights, plans, memory; shared by sessions
 *   iso_session    one sequence of tokens with its state
 *
 * Ownership: `open` and `create` give the caller an object that `close` or `destroy` ends; both
 * take the address of the handle, set it to NULL and accept a NULL handle. Getters lend.
 * Errors: every function that can fail returns an iso_status, takes an iso_error (may be NULL)
 * last, and leaves its out-arguments untouched on failure. The library never prints and never
 * exits; a failed assertion (a bug of isobit) aborts.
 * Threads: stores, models and tokenizers may be used by any number of threads at a time once they
 * are open. An engine and all its sessions belong to one thread at a time.
 * Strings are UTF-8. Sizes are bytes, times are nanoseconds, unless a name says otherwise. */
#ifndef ISOBIT_H
#define ISOBIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define ISO_API
#else
#define ISO_API __attribute__((visibility("default")))
#endif
#if defined(__GNUC__)
#define ISO_CHECKED __attribute__((warn_unused_result))
#else
#define ISO_CHECKED
#endif

#define ISO_VERSION "0.1.0"
#define ISO_NUMERICS_ID "isobit-numerics/1"

/* ---- status ---- */

typedef enum iso_status {
    ISO_OK = 0,
    ISO_BAD_ARGUMENT = -10,  /* arguments and operators */
    ISO_BAD_PARAM = -11,
    ISO_BAD_SHAPE = -12,
    ISO_BAD_DTYPE = -13,
    ISO_BAD_LAYOUT = -14,
    ISO_BAD_INDEX = -15,
    ISO_RANGE_ERROR = -16,
    ISO_LIMIT = -17,
    ISO_NO_MEMORY = -20,     /* memory */
    ISO_OVER_BUDGET = -21,
    ISO_IO = -30,            /* files */
    ISO_NOT_FOUND = -31,
    ISO_BAD_JSON = -32,
    ISO_BAD_FILE = -33,
    ISO_BAD_CONFIG = -34,
    ISO_BAD_TENSOR = -35,
    ISO_BAD_TOKENIZER = -36,
    ISO_BAD_PROMPT = -37,
    ISO_NO_DEVICE = -40,     /* devices */
    ISO_BAD_DEVICE = -41,
    ISO_DEVICE_LOST = -42,
    ISO_UNSUPPORTED = -43,
    ISO_PROBE_FAILED = -44,
    ISO_TIMEOUT = -45,
    ISO_CONTEXT_FULL = -50,  /* sessions */
    ISO_STALE = -51,
    ISO_CANCELLED = -52
} iso_status;

/* What went wrong, in one line: what, where, expected, found. Owned by the caller. */
typedef struct iso_error {
    iso_status status;
    int32_t driver_code;     /* code of a device driver or errno; 0 if none */
    char text[512];          /* NUL-terminated, one line */
} iso_error;

/* "BAD_SHAPE", and "bad shape"; for an unknown code "UNKNOWN", "unknown status". Never NULL. */
ISO_API const char *iso_status_name(iso_status status);
ISO_API const char *iso_status_sentence(iso_status status);

/* ---- store ---- */

typedef struct iso_store iso_store;

/* Opens a checkpoint directory: model.safetensors.index.json and its shards (or one
 * model.safetensors), or a single .safetensors file, or a container (one file of any other name).
 * Every header is read and checked (bounds, overlaps, shapes, duplicates) before this returns;
 * payload pages are mapped read-only, not read. Errors: ISO_NOT_FOUND, ISO_IO, ISO_BAD_JSON,
 * ISO_BAD_FILE, ISO_BAD_TENSOR, ISO_UNSUPPORTED (a container of another version), ISO_NO_MEMORY. */
ISO_API ISO_CHECKED iso_status iso_store_open(const char *path, iso_store **store,
                                              iso_error *error);
ISO_API void iso_store_close(iso_store **store);

/* ---- model ---- */

typedef struct iso_model iso_model;

typedef struct iso_model_info {
    const char *family;              /* "deepseek_v41"; lent, static */
    uint32_t vocab_size;
    uint32_t hidden_size;
    uint32_t layer_count;
    uint32_t context_max;            /* tokens: max_position_embeddings */
    int32_t bos_id, eos_id, pad_id;
    uint32_t compressed_vocab_size;  /* Engram keys the token map must have; 0 without Engram */
    uint64_t tensor_count;
    uint64_t weight_bytes;
    uint64_t decode_bytes;           /* weight bytes read for one decoded token */
    uint64_t kv_bytes_per_token;     /* growing state per token, window rings aside */
    uint64_t ring_bytes;             /* fixed state per sequence: the window rings */
} iso_model_info;

/* Reads and validates the configuration and checks every tensor of the store (name, dtype, shape)
 * against it. The store must outlive the model. */
ISO_API ISO_CHECKED iso_status iso_model_open(iso_store *store, iso_model **model,
                                              iso_error *error);
ISO_API void iso_model_close(iso_model **model);
ISO_API void iso_model_get_info(const iso_model *model, iso_model_info *info);

/* ---- progress ---- */

/* Reports work done out of total; phase is "load", "pack", "prefill" or "verify".
 * Returning false cancels: the call in progress ends with ISO_CANCELLED and loses nothing that was
 * committed. */
typedef bool iso_progress_fn(void *context, const char *phase, uint64_t done, uint64_t total);

/* ---- checkpoints: inspect, verify, tiny ---- */

/* Describes a checkpoint directory as text or as one JSON object: configuration, tensors and bytes
 * by dtype and by component, bytes read per decoded token, state bytes per token. Reads headers and
 * configuration only. *text is owned by the caller (iso_free). */
ISO_API ISO_CHECKED iso_status iso_inspect(const char *directory, bool json, char **text,
                                           iso_error *error);

/* Full check of a checkpoint: names, shapes, and every value (NaN codes, scale bytes, range).
 * Fails on the first violation, naming tensor, place, expected and found; otherwise *text reports
 * what was counted. progress may be NULL. */
ISO_API ISO_CHECKED iso_status iso_verify(const char *directory, bool json,
                                          iso_progress_fn *progress, void *progress_context,
                                          char **text, iso_error *error);

/* Writes a checkpoint with seeded random weights in the released layout. Presets: "v41" (small,
 * every mechanism active), "v41-inventory" (the released shapes as sparse files, no data), and
 * others that iso_tiny_presets lists. The directory must be absent or empty. The same preset and
 * seed give the same bytes on every machine. */
ISO_API ISO_CHECKED iso_status iso_tiny_write(const char *preset, uint64_t seed,
                                              const char *directory, iso_error *error);
/* Name and one-line description of preset `index`; false past the end. */
ISO_API bool iso_tiny_presets(uint32_t index, const char **name, const char **description);

/* ---- tokenizer ---- */

typedef struct iso_tokenizer iso_tokenizer;
typedef struct iso_text_stream iso_text_stream;

enum {
    ISO_ENCODE_PLAIN = 0,            /* text of added tokens is ordinary text */
    ISO_ENCODE_CONTROL = 1           /* added tokens are recognised (rendered prompts) */
};

/* Loads tokenizer.json, from a file or from the directory it lies in. */
ISO_API ISO_CHECKED iso_status iso_tokenizer_open(const char *path, iso_tokenizer **tokenizer,
                                                  iso_error *error);
ISO_API void iso_tokenizer_close(iso_tokenizer **tokenizer);

/* The same from the tokenizer.json of a store. ISO_NOT_FOUND: it has none. */
ISO_API ISO_CHECKED iso_status iso_tokenizer_open_store(const iso_store *store,
                                                        iso_tokenizer **tokenizer,
                                                        iso_error *error);

/* Number of ids; ids are 0 .. count - 1. */
ISO_API uint32_t iso_tokenizer_vocab_size(const iso_tokenizer *tokenizer);

/* Id of an added token by its exact text, or -1. */
ISO_API int32_t iso_tokenizer_find(const iso_tokenizer *tokenizer, const char *text);

/* Token ids: `ids` is owned by the caller (iso_free) and may be NULL when count is 0. */
typedef struct iso_token_list {
    int32_t *ids;
    size_t count;
} iso_token_list;

/* Encodes text_bytes bytes. Invalid UTF-8 is replaced by U+FFFD per maximal invalid part. */
ISO_API ISO_CHECKED iso_status iso_tokenizer_encode(const iso_tokenizer *tokenizer,
                                                    const char *text, size_t text_bytes,
                                                    uint32_t flags, iso_token_list *tokens,
                                                    iso_error *error);

/* Decodes ids to text (special tokens kept, invalid UTF-8 replaced by U+FFFD). *text is
 * NUL-terminated, owned by the caller (iso_free). ISO_BAD_INDEX: an id outside the vocabulary. */
ISO_API ISO_CHECKED iso_status iso_tokenizer_decode(const iso_tokenizer *tokenizer,
                                                    const int32_t *ids, size_t count, char **text,
                                                    size_t *text_bytes, iso_error *error);

/* Engram's token map: map[id] = compressed id, for count = vocab_size ids. *key_count receives the
 * number of distinct keys; the caller compares it with iso_model_info.compressed_vocab_size. */
ISO_API ISO_CHECKED iso_status iso_tokenizer_token_map(const iso_tokenizer *tokenizer,
                                                       int32_t *map, size_t count,
                                                       uint32_t *key_count, iso_error *error);

/* Decodes id by id into pieces that never cut a character. `push` appends to an inner buffer and
 * lends the text that is complete; `finish` lends what is left (cut characters as U+FFFD).
 * A lent piece is valid until the next call with this stream. */
ISO_API ISO_CHECKED iso_status iso_text_stream_create(const iso_tokenizer *tokenizer,
                                                      iso_text_stream **stream, iso_error *error);
ISO_API void iso_text_stream_destroy(iso_text_stream **stream);
ISO_API ISO_CHECKED iso_status iso_text_stream_push(iso_text_stream *stream, int32_t id,
                                                    const char **piece, size_t *piece_bytes,
                                                    iso_error *error);
ISO_API ISO_CHECKED iso_status iso_text_stream_finish(iso_text_stream *stream,
                                                      const char **piece, size_t *piece_bytes,
                                                      iso_error *error);

/* ---- chat ---- */

typedef struct iso_chat_options {
    bool thinking;                   /* thinking mode; else chat mode */
    bool keep_thinking;              /* drop_thinking = false */
    bool no_bos;
    int32_t effort;                  /* 1 .. 100; 0: the official default, 75 */
} iso_chat_options;

/* A rendered prompt: text is NUL-terminated; both are owned by the caller (iso_free). */
typedef struct iso_chat_prompt {
    char *text;
    iso_token_list tokens;
} iso_chat_prompt;

/* Renders a JSON array of messages ({role, content, ...}) to prompt text and to token ids. Only
 * the protocol's own markers become control tokens: text inside messages that looks like one stays
 * ordinary text in the ids. Without a tokenizer (NULL) only the text is made. options may be NULL:
 * chat mode. */
ISO_API ISO_CHECKED iso_status iso_chat_render(const iso_tokenizer *tokenizer,
                                               const char *messages_json, size_t json_bytes,
                                               const iso_chat_options *options,
                                               iso_chat_prompt *prompt, iso_error *error);

/* Frees what encode, decode and render returned. NULL is fine. */
ISO_API void iso_free(void *memory);

/* ---- devices ---- */

/* Lists devices (name, memory, result of the arithmetic probe; why a backend has none) and the
 * instruction sets that CPU kernels can use here. *text is owned by the caller (iso_free). */
ISO_API ISO_CHECKED iso_status iso_devices(bool json, char **text, iso_error *error);

/* ---- engine ---- */

typedef struct iso_engine iso_engine;
typedef struct iso_session iso_session;

/* Called after each step of a plan has run, when tracing is on. hash: XXH3-128, low word first. */
typedef void iso_trace_fn(void *context, const char *node, const char *op, const uint64_t hash[2]);

typedef struct iso_engine_options {
    const char *device;              /* "cpu" (default when NULL) */
    uint32_t thread_count;           /* 0: all cores this process may use */
    uint32_t sessions_max;           /* sessions alive at a time; 0: 1 */
    uint32_t context_tokens;         /* context of each session; 0: 4,096 (or the model's limit) */
    uint32_t step_tokens_max;        /* rows of one step, all sequences; 0: 256 */
    uint32_t page_rows;              /* rows per state page, a power of two; 0: 1,024 */
    const int32_t *token_map;        /* Engram: vocab_size compressed ids; copied */
    uint32_t token_map_keys;         /* distinct keys of the map */
    bool poison;                     /* NaN patterns in new state, and in the workspace before
                                        each step */
    bool reference_only;             /* no kernel but the references: slow, the same bits */
    bool no_fuse;                    /* a step per operator: no fusions, the same bits */
    const char *layout;              /* of weights: "plain", "rows32" (packed wherever a kernel
                                        takes it), "auto" or NULL (packed where that is better) */
    const char *cpu;                 /* strongest instruction set: "portable", "avx2"; NULL: all */
    bool huge_pages;                 /* CPU: large pages for memory of 4 MiB and more; weights
                                        used in place keep the pages of their file */
    bool numa_interleave;            /* CPU: the same memory spread over all NUMA nodes */
    iso_progress_fn *progress;
    void *progress_context;
    iso_trace_fn *trace;             /* a call per operator and step: turns fusions off */
    void *trace_context;
} iso_engine_options;

typedef struct iso_engine_stats {
    uint64_t weight_bytes;           /* resident weights */
    uint64_t mapped_bytes;           /* of these, used in place from the mapped files */
    uint64_t state_bytes;
    uint64_t workspace_bytes;
    uint64_t cleaned_values;         /* weights below 2^-50 that the loader replaced by zero */
    uint32_t thread_count;
} iso_engine_stats;

/* Loads the weights and prepares memory. The model must outlive the engine. */
ISO_API ISO_CHECKED iso_status iso_engine_create(const iso_model *model,
                                                 const iso_engine_options *options,
                                                 iso_engine **engine, iso_error *error);
ISO_API void iso_engine_destroy(iso_engine **engine); /* all sessions must be gone */
ISO_API void iso_engine_get_stats(const iso_engine *engine, iso_engine_stats *stats);

/* Explains the plan for a step of `tokens` rows: one line per step, then the memory ledger.
 * *text is owned by the caller (iso_free). json: as one JSON object instead of text. */
ISO_API ISO_CHECKED iso_status iso_engine_explain(iso_engine *engine, uint32_t tokens, bool json,
                                                  char **text, iso_error *error);

/* ---- session ---- */

typedef struct iso_mark iso_mark;

/* An empty sequence. ISO_LIMIT when sessions_max sessions are alive. */
ISO_API ISO_CHECKED iso_status iso_session_create(iso_engine *engine, iso_session **session,
                                                  iso_error *error);
ISO_API void iso_session_destroy(iso_session **session);

/* Committed tokens, and the most this session can hold. */
ISO_API uint32_t iso_session_length(const iso_session *session);
ISO_API uint32_t iso_session_capacity(const iso_session *session);

/* One sequence's part of a step. */
typedef struct iso_batch_item {
    iso_session *session;
    const int32_t *ids;              /* count tokens, appended at the session's length */
    uint32_t count;                  /* >= 1 */
    uint32_t logit_rows;             /* logits wanted for the last logit_rows tokens; 0: none */
} iso_batch_item;

/* Runs one step over the rows of several sequences (each session at most once; at most
 * step_tokens_max rows in all). The new rows are pending until iso_session_commit. Logits of item
 * i are then lent by iso_session_logits. On failure nothing is committed and nothing is pending. */
ISO_API ISO_CHECKED iso_status iso_engine_step(iso_engine *engine, const iso_batch_item *items,
                                               uint32_t item_count, iso_error *error);

/* Folds the first `count` pending tokens into the state and drops the others. */
ISO_API ISO_CHECKED iso_status iso_session_commit(iso_session *session, uint32_t count,
                                                  iso_error *error);

/* Appends tokens in chunks of at most `chunk` rows (0: step_tokens_max) and commits them; logits
 * of the last token are then available. The bits do not depend on `chunk`. Progress is reported
 * after each chunk when there is more than one. */
ISO_API ISO_CHECKED iso_status iso_session_prefill(iso_session *session, const int32_t *ids,
                                                   size_t count, uint32_t chunk,
                                                   iso_error *error);

/* Lends logits f32 [vocab_size] of the row `row` of the last step's logit rows (0 .. rows - 1), or
 * NULL if there are none. Valid until the next step of the engine. */
ISO_API const float *iso_session_logits(const iso_session *session, uint32_t row);

typedef struct iso_sampling {
    float temperature;               /* below 1e-5: greedy */
    uint32_t top_k;                  /* 0: off */
    float top_p;                     /* 0 < top_p <= 1; 1: off */
    float min_p;                     /* 0 <= min_p < 1; 0: off */
    uint64_t seed;
} iso_sampling;

/* Draws the next token from the logits of `row` (numerics: section 18). The random number depends
 * on the seed and on the drawn token's position only. ISO_BAD_ARGUMENT without logits. */
ISO_API ISO_CHECKED iso_status iso_session_sample(iso_session *session, uint32_t row,
                                                  const iso_sampling *sampling, int32_t *id,
                                                  iso_error *error);

/* Remembers the committed state; rollback returns to it (the session must not have rolled back
 * before the mark). Marks belong to their session and are destroyed before it. */
ISO_API ISO_CHECKED iso_status iso_session_mark(const iso_session *session, iso_mark **mark,
                                                iso_error *error);
ISO_API void iso_mark_destroy(iso_mark **mark);
ISO_API ISO_CHECKED iso_status iso_session_rollback(iso_session *session, const iso_mark *mark,
                                                    iso_error *error);

/* XXH3-128 (low word first) of the committed state in canonical order: equal for equal sequences,
 * whatever the chunking, batch, slot or page placement. */
ISO_API ISO_CHECKED iso_status iso_session_hash(const iso_session *session, uint64_t hash[2],
                                                iso_error *error);

#ifdef __cplusplus
}
#endif

#endif
