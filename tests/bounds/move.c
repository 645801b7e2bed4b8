/* Operators that move bytes: equal to explicit loops. */
#include "tests/bounds/bounds.h"

void bounds_embed_rows(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 1, 1);
    const uint16_t *table = c->in[1];

    for (int64_t i = 0; i < c->rows * dim; i++) {
        const int64_t id = ((const int32_t *)c->in[0])[i / dim];

        bounds_same_bits(c, 0, (uint64_t)i, table[id * dim + i % dim]);
    }
}

void bounds_stream_fill(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 0, 1), streams = c->call.out[0].extent[1];
    const uint16_t *x = c->in[0];

    for (int64_t t = 0; t < c->rows; t++)
        for (int64_t s = 0; s < streams; s++)
            for (int64_t d = 0; d < dim; d++)
                bounds_same_bits(c, 0, (uint64_t)((t * streams + s) * dim + d), x[t * dim + d]);
}

void bounds_fill_row(bounds_case *c)
{
    const iso_fill_row_params *params = (const void *)c->call.params;

    for (uint32_t t = 0; t < c->rows; t++)
        for (uint32_t i = 0; i < params->count; i++) {
            uint32_t bits;

            memcpy(&bits, &params->value[i], sizeof bits);
            bounds_same_bits(c, 0, t * params->count + i, bits);
        }
}

/* ---- state ---- */

static uint64_t row_bytes(const iso_tensor_desc *desc)
{
    const iso_tensor_desc row = iso_desc1(desc->dtype, iso_desc_last(desc));

    return iso_desc_bytes(&row);
}

/* Each group's row goes to its page; the expected state is the old one with those rows changed. */
void bounds_state_append(bounds_case *c)
{
    const iso_page_params *params = (const void *)c->call.params;
    const int32_t *groups = c->in[2], *pages = c->in[3];
    const int64_t per_seq = bounds_extent(c, 3, 1);
    const uint64_t bytes = row_bytes(&c->call.in[0]);
    const unsigned char *src = c->in[1];

    for (uint32_t g = 0; g < c->rows; g++) {
        const int32_t seq = groups[2 * g], entry = groups[2 * g + 1];
        const int32_t rows = (int32_t)params->page_rows;
        const int32_t page = pages[seq * per_seq + entry / rows];

        for (uint64_t i = 0; i < bytes; i++)
            c->before[(uint64_t)(page * rows + entry % rows) * bytes + i] = src[g * bytes + i];
    }
    bounds_same_bytes(c, c->before, iso_desc_bytes(&c->call.in[0]));
}

void bounds_state_keep(bounds_case *c)
{
    const uint64_t bytes = row_bytes(&c->call.in[0]);
    const unsigned char *src = c->in[1];

    for (uint64_t i = 0; i < c->rows * bytes; i++)
        c->before[i] = src[i];
    bounds_same_bytes(c, c->before, iso_desc_bytes(&c->call.in[0]));
}

/* All committed rows in order, also those that later ones overwrite: the ring keeps the last. */
void bounds_state_commit(bounds_case *c)
{
    const int32_t *seqs = c->in[2], *commit = c->in[3];
    const int64_t window = bounds_extent(c, 0, 1);
    const uint64_t bytes = row_bytes(&c->call.in[0]);
    const unsigned char *src = c->in[1];

    for (uint32_t b = 0; b < c->rows; b++)
        for (int64_t i = 0; i < commit[b]; i++) {
            const int64_t slot = seqs[4 * b], position = seqs[4 * b + 1] + i;
            const int64_t from = seqs[4 * b + 2] + i, to = slot * window + position % window;

            for (uint64_t k = 0; k < bytes; k++)
                c->before[(uint64_t)to * bytes + k] = src[(uint64_t)from * bytes + k];
        }
    bounds_same_bytes(c, c->before, iso_desc_bytes(&c->call.in[0]));
}
