#include "backends/cpu/tile.h"

enum { LANES = ISO_TILE_LANES, TOKENS = 64, PER_SEGMENT = LANE_SEGMENT / LANE_CHUNK };

/* Four f32, the narrowest vector register of every processor we know. */
typedef float f32x4 __attribute__((vector_size(16)));
ISO_STATIC_ASSERT(LANES == 8 * 4, "a tile is eight vectors");

void iso_tile_chunk(const float *wt, const float *x, uint32_t count, float sums[LANES])
{
    const f32x4 *w = (const f32x4 *)(const void *)wt;
    f32x4 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};

    for (uint32_t k = 0; k < count; k++, w += 8) {
        const f32x4 b = {x[k], x[k], x[k], x[k]};

        a0 = a0 + w[0] * b;
        a1 = a1 + w[1] * b;
        a2 = a2 + w[2] * b;
        a3 = a3 + w[3] * b;
        a4 = a4 + w[4] * b;
        a5 = a5 + w[5] * b;
        a6 = a6 + w[6] * b;
        a7 = a7 + w[7] * b;
    }
    memcpy(sums, &a0, sizeof a0);
    memcpy(sums + 4, &a1, sizeof a1);
    memcpy(sums + 8, &a2, sizeof a2);
    memcpy(sums + 12, &a3, sizeof a3);
    memcpy(sums + 16, &a4, sizeof a4);
    memcpy(sums + 20, &a5, sizeof a5);
    memcpy(sums + 24, &a6, sizeof a6);
    memcpy(sums + 28, &a7, sizeof a7);
}

static void add_segment(iso_tile_sum *sum, bool is_first)
{
    for (uint32_t j = 0; j < LANES; j++)
        sum->total[j] = is_first ? sum->segment[j] : sum->total[j] + sum->segment[j];
}

void iso_tile_push(iso_tile_sum *sum, uint32_t chunk, const float sums[LANES])
{
    for (uint32_t j = 0; j < LANES; j++)
        sum->segment[j] = chunk % PER_SEGMENT != 0 ? sum->segment[j] + sums[j] : sums[j];
    if (chunk % PER_SEGMENT == PER_SEGMENT - 1)
        add_segment(sum, chunk < PER_SEGMENT);
}

void iso_tile_end(iso_tile_sum *sum, uint32_t chunk_count)
{
    if (chunk_count % PER_SEGMENT != 0)
        add_segment(sum, chunk_count < PER_SEGMENT);
}

/* e4m3 without tables, branches or subnormal operands: the bits of a normal number with the
 * exponent moved by 120; a code below 8 is 2^-6 (1 + m/8) - 2^-6. Both steps are exact. */
void iso_tile_e4m3(const uint8_t *code, uint32_t count, float *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t c = code[i], a = c & 0x7fu;
        const uint32_t small = a < 8u ? 0xffffffffu : 0u;
        const float v = lane_float((a << 20) + (120u << 23) + (small & 0x00800000u))
                      - lane_float(small & 0x3c800000u);

        out[i] = lane_float(lane_bits(v) | (c & 0x80u) << 24);
    }
}

void iso_tile_bf16(const uint16_t *half, uint32_t count, float *out)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = lane_float((uint32_t)half[i] << 16);
}

void iso_tile_e2m1(const uint8_t *code, uint32_t count, int16_t *out)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const int16_t pair[2] = {(int16_t)(code[i] & 15), (int16_t)(code[i] >> 4)};

        for (uint32_t j = 0; j < 2; j++) {
            const int16_t m = (int16_t)(pair[j] & 7);
            const int16_t over4 = (int16_t)(m > 4 ? m - 4 : 0), over6 = (int16_t)(m > 6 ? 2 : 0);
            const int16_t v = (int16_t)(m + over4 + over6);

            out[2 * i + j] = (int16_t)(pair[j] & 8 ? -v : v);
        }
    }
}

uint32_t iso_tile_clean(float *values, uint32_t count)
{
    uint32_t bad = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t u = lane_bits(values[i]);
        const int32_t a = (int32_t)(u & 0x7fffffffu);

        bad |= a >= 0x58800000 ? LANE_RANGE : 0u;
        values[i] = lane_float(a < 0x26800000 ? 0u : u);
    }
    return bad;
}

/* The chunk of `count` features, one feature per lane; lanes without one are zero. */
static uint32_t load_weights(const iso_tile_job *job, uint64_t n, uint32_t lanes, uint32_t begin,
                             uint32_t count, float *wt)
{
    float row[LANE_CHUNK];
    uint32_t flags = 0;

    if (lanes < LANES)
        memset(wt, 0, LANE_CHUNK * LANES * sizeof *wt);
    for (uint32_t j = 0; j < lanes; j++) {
        flags |= job->weights(job, n + j, begin, count, row);
        for (uint32_t k = 0; k < count; k++)
            wt[k * LANES + j] = row[k];
    }
    return flags;
}

/* Features n .. n + lanes - 1 of rows t .. t + rows - 1. */
static uint32_t run_tile(const iso_tile_job *job, uint64_t n, uint32_t lanes, uint64_t t,
                         uint32_t rows)
{
    _Alignas(64) float wt[LANE_CHUNK * LANES];
    float x[LANE_CHUNK], sums[LANES];
    iso_tile_sum sum[TOKENS];
    uint32_t chunk = 0, flags = 0;

    for (uint32_t begin = 0; begin < job->k; begin += LANE_CHUNK, chunk++) {
        const uint32_t left = job->k - begin, count = left < LANE_CHUNK ? left : LANE_CHUNK;

        flags |= load_weights(job, n, lanes, begin, count, wt);
        for (uint32_t i = 0; i < rows; i++) {
            flags |= job->inputs(job, t + i, n, begin, count, x);
            iso_tile_chunk(wt, x, count, sums);
            iso_tile_push(&sum[i], chunk, sums);
        }
    }
    for (uint32_t i = 0; i < rows; i++) {
        iso_tile_end(&sum[i], chunk);
        flags |= job->store(job, t + i, n, lanes, sum[i].total);
    }
    return flags;
}

uint32_t iso_tile_run(const iso_tile_job *job, iso_range units)
{
    uint32_t flags = 0, lanes;

    for (uint64_t n = units.begin; n < units.end; n += lanes) {
        const uint64_t left = units.end - n, in_split = job->split - n % job->split;
        const uint64_t most = left < in_split ? left : in_split;

        lanes = most < LANES ? (uint32_t)most : LANES;
        for (uint64_t t = 0; t < job->rows; t += TOKENS) {
            const uint64_t rows = job->rows - t;

            flags |= run_tile(job, n, lanes, t, rows < TOKENS ? (uint32_t)rows : TOKENS);
        }
    }
    return flags;
}
