/* sample: sampling parameters to the integer form of numerics 18, and one draw. */
#include "model/engine.h"

#include "ggml-style-ops/lane/div.h"

#include <string.h>

enum { INV_T, TOP_K, TOP_P, MIN_P, SEED_LOW, SEED_HIGH, POSITION, MODE, WORDS };

static iso_status encode(const iso_sampling *s, uint32_t word[WORDS], iso_error *error)
{
    const bool is_greedy = s->temperature < 1e-5f;

    if (!(s->temperature >= 0.0f && s->temperature <= 100.0f))
        return iso_fail(error, ISO_BAD_ARGUMENT, "temperature is %g, expected 0 to 100",
                        (double)s->temperature);
    if (!(s->top_p > 0.0f && s->top_p <= 1.0f))
        return iso_fail(error, ISO_BAD_ARGUMENT, "top_p is %g, expected more than 0, at most 1",
                        (double)s->top_p);
    if (!(s->min_p >= 0.0f && s->min_p < 1.0f))
        return iso_fail(error, ISO_BAD_ARGUMENT, "min_p is %g, expected 0 to less than 1",
                        (double)s->min_p);
    memset(word, 0, WORDS * sizeof *word);
    word[INV_T] = lane_bits(is_greedy ? 1.0f : lane_div(1.0f, s->temperature));
    word[TOP_K] = s->top_k;
    if (s->top_p < 1.0f) {               /* round(top_p 2^32): exact in binary64, at least 1 */
        const uint64_t p = (uint64_t)((double)s->top_p * 4294967296.0 + 0.5);

        word[TOP_P] = p == 0 ? 1 : (uint32_t)p;
    }
    word[MIN_P] = (uint32_t)((double)s->min_p * 2147483648.0);
    word[SEED_LOW] = (uint32_t)s->seed;
    word[SEED_HIGH] = (uint32_t)(s->seed >> 32);
    word[MODE] = is_greedy;
    return ISO_OK;
}

/* The last token of the step has position base + count - 1; row r of R logit rows belongs to
 * position base + count - R + r and draws the token after it. */
static uint32_t drawn_position(const iso_session *session, uint32_t row)
{
    return session->pending.end - session->pending.logit_rows + row + 1;
}

iso_status iso_session_sample(iso_session *session, uint32_t row, const iso_sampling *sampling,
                              int32_t *id, iso_error *error)
{
    iso_engine *engine = session->engine;
    const float *logits = iso_session_logits(session, row);
    const iso_ready *sampler = &engine->sampler;
    uint32_t word[WORDS];

    if (logits == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "there are no logits for row %u", row);
    ISO_TRY(encode(sampling, word, error));
    word[POSITION] = drawn_position(session, row);
    memcpy(iso_ready_input(sampler, engine->sampler_logits), logits,
           engine->config->vocab_size * sizeof *logits);
    memcpy(iso_ready_input(sampler, engine->sampler_words), word, sizeof word);
    ISO_TRY(iso_engine_run(engine, &engine->sampler, false, error));
    *id = *(const int32_t *)iso_plan_output(sampler->plan, 0);
    return ISO_OK;
}
