/* block_hc: single-pass hyper-connections. A site's coefficients come from the streams before its
 * sublayer; its pre is consumed one site later (model-v41.md 4.9). */
#include "model/blocks.h"

#include <stdio.h>

iso_site iso_block_mix(iso_builder *b, const char *site, iso_value x)
{
    const iso_norm_params norm = {(float)b->config->norm_eps};
    const iso_hc_params hc = {b->config->sinkhorn_iterations, (float)b->config->hc_eps};
    char name[64];
    iso_value r, mix, scale, base, out[ISO_OP_OUTPUTS_MAX];

    snprintf(name, sizeof name, "%s.rms", site);
    r = iso_emit(b, name, ISO_OP_ID_row_rms, &norm, ISO_IN(x));
    snprintf(name, sizeof name, "hc_%s_fn", site);
    mix = iso_emit(b, name, ISO_OP_ID_matmul_f32, NULL, ISO_IN(x, iso_weight(b, name)));
    snprintf(name, sizeof name, "hc_%s_scale", site);
    scale = iso_weight(b, name);
    snprintf(name, sizeof name, "hc_%s_base", site);
    base = iso_weight(b, name);
    snprintf(name, sizeof name, "%s.split", site);
    iso_emit_all(b, name, ISO_OP_ID_hc_split, &hc, ISO_IN(mix, r, scale, base), out);
    return (iso_site){out[0], out[1], out[2]};
}

iso_value iso_block_collapse(iso_builder *b, const char *site, const char *norm, iso_value x,
                             iso_value pre)
{
    char name[64];
    iso_value u;

    snprintf(name, sizeof name, "%s.collapse", site);
    u = iso_emit(b, name, ISO_OP_ID_hc_collapse, NULL, ISO_IN(x, pre));
    snprintf(name, sizeof name, "%s.norm", site);
    return iso_norm(b, name, norm, u);
}

iso_value iso_block_expand(iso_builder *b, const char *site, iso_value u, iso_value x,
                           const iso_site *mix)
{
    char name[64];

    snprintf(name, sizeof name, "%s.expand", site);
    return iso_emit(b, name, ISO_OP_ID_hc_expand, NULL, ISO_IN(u, x, mix->post, mix->comb));
}
