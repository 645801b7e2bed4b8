/* rope_angles: cosine and sine of position times frequency.
 *   a = f32(position[g]) * freq[i];  y[g,i] = {cos a, sin a}
 * Shapes:   position i32 [G]; freq f32 [P]; y f32 [G, P, 2]. G >= 0, P >= 1.
 * Units:    one position; angles are radians.
 * Order:    numerics 10.2: a is rounded to f32, then cos and sin of that number are correctly
 *           rounded. Nothing is cleaned; cos 0 = 1, sin 0 = +0.
 * Ranges:   position < 2^20 is exact in f32; freq is 0 or >= 2^-50, so no result is subnormal.
 * Params:   none.
 * Aliasing: none.
 * Errors:   a position outside 0 .. 2^20 - 1 raises ISO_FLAG_INDEX; a frequency that is negative,
 *           below 2^-50 but not 0, or NaN, an angle above 2^20, or a rounding that could not be
 *           proved raises ISO_FLAG_RANGE; the pair is then {1, 0}. ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/model.py, precompute_freqs_cis. Differs from it in: rounding of cos
 *           and sin, which is the platform's there. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/lane/sincos.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { POSITION, FREQ, Y };
enum { POSITION_END = 1 << 20 };

iso_status iso_rope_angles_infer(iso_op_call *call, iso_error *error)
{
    ISO_TRY(iso_rule_input(call, POSITION, "position", ISO_DTYPE_I32, 1, error));
    ISO_TRY(iso_rule_input(call, FREQ, "freq", ISO_DTYPE_F32, 1, error));
    ISO_TRY(iso_rule_within(call, FREQ, "freq", 0, 1, 1 << 16, error));
    call->out[0] = iso_desc3(ISO_DTYPE_F32, call->in[POSITION].extent[0],
                             call->in[FREQ].extent[0], 2);
    iso_live_copy(&call->out[0], &call->in[POSITION], 1);
    return ISO_OK;
}

void iso_rope_angles_fill(const iso_op_call *call, void *args)
{
    *(iso_rope_angles_args *)args = (iso_rope_angles_args){
        .rows = iso_live_of(&call->in[POSITION]),
        .pairs = (uint32_t)call->in[FREQ].extent[0],
    };
}

uint64_t iso_rope_angles_units(const void *args)
{
    const iso_rope_angles_args *a = args;

    return a->rows.count;
}

/* {cos, sin} of position * freq; false if freq or the angle is out of range, or unproved. */
static bool angle_pair(int32_t position, float freq, float pair[2])
{
    const uint32_t bits = lane_bits(freq);
    float angle;
    int slow;

    if (bits != 0 && (bits < LANE_CLEAN_MIN || bits > 0x49800000u))    /* 2^20; negative: larger */
        return false;
    angle = (float)position * freq;               /* position < 2^20: exact in f32 */
    return angle <= 0x1p20f && lane_sincos(angle, &pair[1], &pair[0], &slow);
}

void iso_rope_angles_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rope_angles_args *a = args;
    const int32_t *position = tensors->at[POSITION];
    const float *freq = tensors->at[FREQ];
    float *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t g = units.begin; g < units.end; g++)
        for (uint32_t i = 0; i < a->pairs; i++) {
            float pair[2] = {1.0f, 0.0f};

            if (position[g] < 0 || position[g] >= POSITION_END) {
                flags |= ISO_FLAG_INDEX;
            } else if (!angle_pair(position[g], freq[i], pair)) {
                flags |= ISO_FLAG_RANGE;
                pair[0] = 1.0f;
                pair[1] = 0.0f;
            }
            y[(g * a->pairs + i) * 2] = pair[0];
            y[(g * a->pairs + i) * 2 + 1] = pair[1];
        }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(int64_t count, int64_t pairs, int64_t first, int64_t last,
                      const char *name)
{
    iso_case test = iso_case_start(ISO_OP_ID_rope_angles, "%s_%lldx%lld", name,
                                   (long long)count, (long long)pairs);

    iso_case_in(&test, POSITION, iso_desc1(ISO_DTYPE_I32, count), ISO_FILL_RANGE, first, last);
    iso_case_in(&test, FREQ, iso_desc1(ISO_DTYPE_F32, pairs), ISO_FILL_CONSTANT, 0, 0);
    return test;
}

/* Falling frequencies from 1, like those of a model: f, f * 0.75, .. and 0 at the end. */
static void make_freq(const iso_case *test, void *const *inputs)
{
    float *freq = inputs[FREQ];
    const int64_t pairs = test->call.in[FREQ].extent[0];

    freq[0] = 1.0f;
    for (int64_t i = 1; i < pairs; i++)
        freq[i] = freq[i - 1] * lane_float(0x3f3ff911u);
    if (pairs > 40)
        freq[pairs - 1] = 0.0f;
}

/* Consecutive positions, so that position 0 is among them. */
static void make_first_positions(const iso_case *test, void *const *inputs)
{
    int32_t *position = inputs[POSITION];

    for (int32_t i = 0; i < test->call.in[POSITION].extent[0]; i++)
        position[i] = i;
    make_freq(test, inputs);
}

static void make_low_position(const iso_case *test, void *const *inputs)
{
    ((int32_t *)inputs[POSITION])[1] = -1;
    make_freq(test, inputs);
}

static void make_high_position(const iso_case *test, void *const *inputs)
{
    ((int32_t *)inputs[POSITION])[4] = 1 << 20;
    make_freq(test, inputs);
}

static void make_nan(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((float *)inputs[FREQ])[2] = lane_float(0x7fc00000u);
}

static void make_tiny(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((float *)inputs[FREQ])[2] = lane_float(0x267fffffu);        /* just below 2^-50 */
}

/* Positions above 65536 and frequencies that are refused: all `all`, and what `make` puts. */
static void add_bad_freq(iso_case_sink *sink, const char *name, int64_t all,
                         iso_case_make_fn *make)
{
    iso_case test = start(3, 4, 65537, 70000, name);

    test.input[FREQ] = (iso_case_input){ISO_FILL_RANGE, all, all};
    test.make = make;
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}

void iso_rope_angles_cases(iso_case_sink *sink)
{
    static const int64_t pairs[] = {1, 2, 7, 16, 31, 32, 33, 50};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(pairs); i++) {
        test = start(5, pairs[i], 0, POSITION_END - 1, "any");
        test.make = make_freq;
        iso_case_add(sink, &test);
    }
    test = start(700, 32, 0, 0, "first");
    test.make = make_first_positions;
    iso_case_add(sink, &test);
    test = start(64, 32, POSITION_END - 64, POSITION_END - 1, "last");
    test.make = make_freq;
    iso_case_add(sink, &test);
    test = start(0, 32, 0, 0, "empty");
    iso_case_add(sink, &test);
    test = start(9, 32, 0, 65535, "live4");
    test.make = make_freq;
    iso_case_live(&test, POSITION, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    test = start(5, 4, 0, 65535, "low_position");
    test.make = make_low_position;
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
    test = start(5, 4, 0, 65535, "high_position");
    test.make = make_high_position;
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
    add_bad_freq(sink, "negative", -1, NULL);
    add_bad_freq(sink, "large_angle", 16, NULL);                 /* 16 * 65537 > 2^20 */
    add_bad_freq(sink, "large_freq", 1 << 21, NULL);
    add_bad_freq(sink, "nan", 1, make_nan);
    add_bad_freq(sink, "tiny", 1, make_tiny);
}
