/* turn_vec: four words of each of VEC_LANES rows turned so that lanes are rows. A file includes
 * vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_TURN_VEC_H
#define ISO_CPU_X86_TURN_VEC_H

#include "backends/cpu/simd.h"

/* out[i]: word i of the sixteen bytes at row[j] + at, j the lane. */
static inline void vec_turn(const uint16_t *const row[VEC_LANES], uint32_t at, veci out[4])
{
    veci a[4], b[4];

    for (uint32_t i = 0; i < 4; i++)
        a[i] = vec_load_fourths(row + i, at);
    b[0] = VEC(unpacklo_epi32)(a[0], a[1]);
    b[1] = VEC(unpackhi_epi32)(a[0], a[1]);
    b[2] = VEC(unpacklo_epi32)(a[2], a[3]);
    b[3] = VEC(unpackhi_epi32)(a[2], a[3]);
    out[0] = VEC(unpacklo_epi64)(b[0], b[2]);
    out[1] = VEC(unpackhi_epi64)(b[0], b[2]);
    out[2] = VEC(unpacklo_epi64)(b[1], b[3]);
    out[3] = VEC(unpackhi_epi64)(b[1], b[3]);
}

#endif
