#include "ggml-style-ops/fusions.h"

/* "a", "b", ... of up to six words. */
#define WORDS_1(a) #a
#define WORDS_2(a, ...) #a, WORDS_1(__VA_ARGS__)
#define WORDS_3(a, ...) #a, WORDS_2(__VA_ARGS__)
#define WORDS_4(a, ...) #a, WORDS_3(__VA_ARGS__)
#define WORDS_5(a, ...) #a, WORDS_4(__VA_ARGS__)
#define WORDS_6(a, ...) #a, WORDS_5(__VA_ARGS__)
#define WORDS_OF(a, b, c, d, e, f, words, ...) words
#define WORDS(...)                                                                                \
    WORDS_OF(__VA_ARGS__, WORDS_6, WORDS_5, WORDS_4, WORDS_3, WORDS_2, WORDS_1, 0)(__VA_ARGS__)

#define COUNT(...) (sizeof((const char *[]){WORDS(__VA_ARGS__)}) / sizeof(const char *))

static const iso_fusion table[ISO_FUSION_ID_COUNT] = {
#define FUSION(row, ...)                                                                          \
    [ISO_FUSION_ID_##row] = {.name = #row, .part_count = COUNT(__VA_ARGS__),                      \
                             .part = {WORDS(__VA_ARGS__)}},
#include "ggml-style-ops/fusions.def"
#undef FUSION
};

const iso_fusion *iso_fusion_rows(void) { return table; }
