#include "model/rope_freq.h"

#include <string.h>

static const uint32_t plain[ISO_ROPE_PAIRS] = {
#define FREQ(bits) 0x##bits##u,
#define FREQ_PLAIN
#include "model/rope_freq.def"
#undef FREQ_PLAIN
};

static const uint32_t yarn[ISO_ROPE_PAIRS] = {
#define FREQ_YARN
#include "model/rope_freq.def"
#undef FREQ_YARN
#undef FREQ
};

iso_status iso_rope_frequencies(const iso_config *config, bool compressed,
                                float frequency[ISO_ROPE_PAIRS], iso_error *error)
{
    if (config->rope_dim != 2 * ISO_ROPE_PAIRS)
        return iso_fail(error, ISO_UNSUPPORTED, "qk_rope_head_dim is %u: only tables for 64 ship",
                        config->rope_dim);
    if (!compressed && config->rope_theta != 10000.0)
        return iso_fail(error, ISO_UNSUPPORTED, "rope_theta is %g: only a table for 10000 ships",
                        config->rope_theta);
    if (compressed
        && (config->compress_theta != 160000.0 || config->yarn_factor != 16.0
            || config->yarn_beta_fast != 32.0 || config->yarn_beta_slow != 1.0
            || config->yarn_length != 65536))
        return iso_fail(error, ISO_UNSUPPORTED,
                        "compress_rope_theta %g, factor %g, beta %g/%g, length %u: only a table "
                        "for 160000, 16, 32/1, 65536 ships", config->compress_theta,
                        config->yarn_factor, config->yarn_beta_fast, config->yarn_beta_slow,
                        config->yarn_length);
    memcpy(frequency, compressed ? yarn : plain, sizeof plain);
    return ISO_OK;
}
