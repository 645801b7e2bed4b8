/* The start-up probe of the CPU (numerics 20.3), in the small: what a wrong build or a foreign mode
 * would change. The references are the oracle, so comparing all operators is the tests' work. */
#include "backends/cpu/cpu.h"

#include "core/fpmode.h"
#include "ggml-style-ops/lane/sqrt.h"

/* volatile: the compiler must not compute at build time what the processor is asked. */
static bool rounds_to_nearest(void)
{
    const volatile float one = 1.0f, half_ulp = 0x1p-24f, ulps = 0x1.8p-23f;

    return one + half_ulp == 1.0f && one + ulps == 0x1.000004p0f && -one - half_ulp == -1.0f;
}

static bool keeps_subnormals(void)
{
    const volatile float small = 0x1p-100f, smaller = 0x1p-140f;
    const volatile float product = small * 0x1p-40f;

    return lane_bits(product) == 0x200u && lane_bits(smaller + smaller) == 0x400u;
}

static bool does_not_contract(void)
{
    const volatile float x = 0x1.0008p0f;
    const float a = x, z = -0x1.001p0f;

    return a * a + z == 0.0f;                     /* fused: 2^-26 */
}

static bool converts_integers(void)
{
    const volatile int32_t odd = 16777217, tie = 16777219;

    return (float)odd == 16777216.0f && (float)tie == 16777220.0f;
}

static bool divides(void)
{
    uint32_t state = 1;

    for (int i = 0; i < 4096; i++) {
        float a, b;

        state = state * 1664525u + 1013904223u;
        a = lane_float(0x30000000u + (state >> 3));
        state = state * 1664525u + 1013904223u;
        b = lane_float(0x30000000u + (state >> 3));
        if (lane_bits(a / b) != lane_bits(lane_div(a, b)))
            return false;
    }
    return lane_bits(lane_sqrt(2.0f)) == 0x3fb504f3u;
}

const char *iso_cpu_probe(void)
{
    const uint64_t mode = iso_fpmode_enter();
    const char *failing = iso_fpmode_now() != iso_fpmode_wanted() ? "P1 floating-point mode"
                        : !rounds_to_nearest()                    ? "P1 rounding"
                        : !keeps_subnormals()                     ? "P1 subnormals"
                        : !does_not_contract()                    ? "P2 contraction"
                        : !converts_integers()                    ? "P3 conversion"
                        : !divides()                              ? "P5 division"
                                                                  : "";

    iso_fpmode_leave(mode);
    return failing;
}
