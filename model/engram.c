#include "model/engram.h"

#include <string.h>

/* ---- numpy's default_rng: SeedSequence -> PCG64 (XSL-RR 128/64) ---- */

typedef struct u128 {
    uint64_t low, high;
} u128;

static u128 mul64(uint64_t a, uint64_t b)
{
    const uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
    const uint64_t ll = al * bl, lh = al * bh, hl = ah * bl;
    const uint64_t middle = (ll >> 32) + (lh & 0xffffffffu) + (hl & 0xffffffffu);

    return (u128){(ll & 0xffffffffu) | middle << 32,
                  ah * bh + (lh >> 32) + (hl >> 32) + (middle >> 32)};
}

static u128 add128(u128 a, u128 b)
{
    u128 sum = {a.low + b.low, a.high + b.high};

    sum.high += sum.low < a.low;
    return sum;
}

static u128 mul128(u128 a, u128 b)       /* modulo 2^128 */
{
    u128 product = mul64(a.low, b.low);

    product.high += a.low * b.high + a.high * b.low;
    return product;
}

typedef struct pcg64 {
    u128 state, increment;
} pcg64;

static void pcg_step(pcg64 *rng)
{
    const u128 multiplier = {0x4385df649fccf645u, 0x2360ed051fc65da4u};

    rng->state = add128(mul128(rng->state, multiplier), rng->increment);
}

static uint64_t pcg_next(pcg64 *rng)
{
    uint64_t x;
    unsigned rotation;

    pcg_step(rng);
    x = rng->state.high ^ rng->state.low;
    rotation = (unsigned)(rng->state.high >> 58);
    return x >> rotation | x << ((64 - rotation) & 63);
}

static uint32_t hash_mix(uint32_t value, uint32_t *running, uint32_t multiplier)
{
    value ^= *running;
    *running *= multiplier;
    value *= *running;
    return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y)
{
    const uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;

    return r ^ r >> 16;
}

static pcg64 pcg_seed(uint32_t seed)
{
    uint32_t pool[4], a = 0x43b0d7e5u, b = 0x8b51f9ddu, word[8];
    uint64_t w[4];
    pcg64 rng = {{0, 0}, {0, 0}};

    for (int i = 0; i < 4; i++)
        pool[i] = hash_mix(i == 0 ? seed : 0, &a, 0x931e8875u);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            if (from != to)
                pool[to] = mix(pool[to], hash_mix(pool[from], &a, 0x931e8875u));
    for (int i = 0; i < 8; i++)
        word[i] = hash_mix(pool[i % 4], &b, 0x58f38dedu);
    for (int i = 0; i < 4; i++)
        w[i] = (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
    rng.increment = (u128){w[3] << 1 | 1, w[2] << 1 | w[3] >> 63};
    pcg_step(&rng);
    rng.state = add128(rng.state, (u128){w[1], w[0]});
    pcg_step(&rng);
    return rng;
}

/* Uniform in [0, bound), bound > 2^32, by the rejection rule of numpy's 64-bit integers. */
static uint64_t pcg_bounded(pcg64 *rng, uint64_t bound)
{
    u128 m = mul64(pcg_next(rng), bound);

    if (m.low < bound) {
        const uint64_t threshold = (0 - bound) % bound;

        while (m.low < threshold)
            m = mul64(pcg_next(rng), bound);
    }
    return m.high;
}

static void derive_multipliers(const iso_config *config, uint32_t layer, uint64_t *multiplier)
{
    const uint64_t half = (uint64_t)INT64_MAX / config->engram_keys / 2;
    const uint64_t bound = half > 1 ? half : 1;
    pcg64 rng = pcg_seed(10007u * layer);

    for (uint32_t i = 0; i < config->engram_ngram; i++)
        multiplier[i] = 2 * pcg_bounded(&rng, bound) + 1;
}

/* ---- primes ---- */

static bool is_prime(uint32_t n)
{
    if (n < 2 || (n % 2 == 0 && n != 2))
        return false;
    for (uint32_t d = 3; (uint64_t)d * d <= n; d += 2)
        if (n % d == 0)
            return false;
    return true;
}

static bool is_used(const iso_engram_layer *layers, uint32_t layer, uint32_t column,
                    uint32_t columns, uint32_t prime)
{
    for (uint32_t l = 0; l <= layer; l++)
        for (uint32_t c = 0; c < (l < layer ? columns : column); c++)
            if (layers[l].prime[c] == prime)
                return true;
    return false;
}

/* For each order the search restarts at the configured size; primes used before, in any layer or
 * order, are passed over. */
static void derive_primes(const iso_config *config, iso_engram_layer *layers, uint32_t layer)
{
    const uint32_t columns = iso_engram_columns(config), heads = config->engram_heads;
    uint32_t candidate = 0, offset = 0;

    for (uint32_t column = 0; column < columns; column++) {
        if (column % heads == 0)
            candidate = config->engram_vocab - 1;
        do
            candidate++;
        while (!is_prime(candidate) || is_used(layers, layer, column, columns, candidate));
        layers[layer].prime[column] = candidate;
        layers[layer].offset[column] = offset;
        offset += candidate;
        layers[layer].rows += candidate;
    }
}

uint32_t iso_engram_columns(const iso_config *config)
{
    return config->has_engram ? (config->engram_ngram - 1) * config->engram_heads : 0;
}

iso_status iso_engram_derive(const iso_config *config, iso_engram_layer *layers,
                             iso_error *error)
{
    for (uint32_t i = 0; i < config->engram_layers.count; i++) {
        memset(&layers[i], 0, sizeof layers[i]);
        derive_multipliers(config, (uint32_t)config->engram_layers.at[i], layers[i].multiplier);
        derive_primes(config, layers, i);
        if (layers[i].rows > INT32_MAX)
            return iso_fail(error, ISO_BAD_CONFIG, "engram layer %d: %llu table rows, limit %d",
                            config->engram_layers.at[i], (unsigned long long)layers[i].rows,
                            INT32_MAX);
        if (config->engram_rows.count != 0
            && layers[i].rows != (uint64_t)config->engram_rows.at[i])
            return iso_fail(error, ISO_BAD_CONFIG,
                            "engram_num_embeddings[%u] is %d, but the primes derived from the "
                            "configuration sum to %llu", i, config->engram_rows.at[i],
                            (unsigned long long)layers[i].rows);
    }
    return ISO_OK;
}
