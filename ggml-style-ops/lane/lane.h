/* lane: the dialect of the scalar code that is the same text in C, CUDA C++ and GLSL.
 *
 * Lane code uses binary32 add, sub, mul (each rounded once, never contracted), comparisons, and
 * 32-bit integers with wrap-around; every constant is a bit pattern. A backend that compiles lane
 * code in another language defines these macros before it includes a lane header:
 *   LANE_FN     prefix of a function           LANE_FLAGS  last parameter: a flag word to OR into
 *   LANE_RAISE  ORs a bit into that word       lane_f32    float (GLSL: precise float)
 * Functions that can meet a value outside the domain take LANE_FLAGS; pass it on by its name. */
#ifndef ISO_LANE_LANE_H
#define ISO_LANE_LANE_H

#ifndef LANE_FN
#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "isobit must be built without -ffast-math and -Ofast"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "binary32 has to be evaluated as binary32");

#define LANE_FN static inline
#define LANE_FLAGS uint32_t *flags
#define LANE_RAISE(bit) (*flags |= (bit))
typedef float lane_f32;
typedef uint32_t lane_u32;
typedef int32_t lane_i32;

LANE_FN lane_u32 lane_bits(lane_f32 x)
{
    lane_u32 u;

    memcpy(&u, &x, sizeof u);
    return u;
}

LANE_FN lane_f32 lane_float(lane_u32 u)
{
    lane_f32 x;

    memcpy(&x, &u, sizeof x);
    return x;
}
#define LANE_I32(x) ((lane_i32)(x))
#define LANE_U32(x) ((lane_u32)(x))
#define LANE_F32(x) ((lane_f32)(x))
#endif

#define LANE_RANGE 1u                /* ISO_FLAG_RANGE */

/* Constants of the contract, as bit patterns of binary32. */
#define LANE_EPS_1E20 0x1e3ce508u    /* 1e-20 */
#define LANE_EPS_1E6 0x358637bdu     /* 1e-6 */
#define LANE_CHUNK 128u
#define LANE_SEGMENT 1024u
#define LANE_ROW_SEGMENT 4096u
#define LANE_KEY_BLOCK 64u

#endif
