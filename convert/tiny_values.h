/* tiny_values: the bytes of a made-up weight, from (seed, tensor name, index) alone.
 *
 * Integers only, so that every machine writes the same bytes. A draw is splitmix64 of a key and a
 * counter; a "bell" is the sum of four 16-bit parts of a draw, less its mean: an integer in
 * [-131070, 131070] with standard deviation 37,837 (about 2^15.2). What a tensor's values look like
 * is a row of tiny_fill.def. */
#ifndef ISO_CONVERT_TINY_VALUES_H
#define ISO_CONVERT_TINY_VALUES_H

#include "model/weights.h"

/* Writes bytes [first, first + count) of the tensor's payload; both are multiples of 4 except at
 * the tensor's end. */
void iso_tiny_fill(const iso_weight_spec *spec, uint64_t seed, uint64_t first, uint8_t *out,
                   size_t count);

#endif
