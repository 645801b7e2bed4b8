/* rope_freq: rotary frequencies of a configuration, as shipped constants; never computed with a
 * library power function (numerics 10.1). */
#ifndef ISO_MODEL_ROPE_FREQ_H
#define ISO_MODEL_ROPE_FREQ_H

#include "model/config.h"

enum { ISO_ROPE_PAIRS = 32 };

/* Layers without compression: theta 10,000, plain. Layers with it: theta 160,000 with YaRN, factor
 * 16, from 65,536. Other values are ISO_UNSUPPORTED: their table would have to be shipped too. */
iso_status iso_rope_frequencies(const iso_config *config, bool compressed,
                                float frequency[ISO_ROPE_PAIRS], iso_error *error);

#endif
