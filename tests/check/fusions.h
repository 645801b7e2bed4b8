/* fusions: a case of a fusion, made of a case of its first operator. */
#ifndef ISO_TESTS_CHECK_FUSIONS_H
#define ISO_TESTS_CHECK_FUSIONS_H

#include "ggml-style-ops/fusions.h"
#include "tests/check/check.h"

typedef struct check_fused {
    iso_case test[ISO_FUSION_PARTS_MAX];
    check_subject part[ISO_FUSION_PARTS_MAX];
    iso_fused_call call;
    check_group group;
    uint32_t number;                     /* of the case: parameters of later parts vary with it */
} check_fused;

/* parts.c: name of the first later part that no function completes, or NULL. */
const char *check_fused_missing(const iso_fusion *fusion);
/* More output features for first operators that are matmuls; heads where a part wants them. */
void check_fused_widen(check_list *list, const iso_fusion *fusion);
/* Builds all parts and their expected bytes. False: the shapes do not go on. check_fused_deinit in
 * both cases. */
bool check_fused_init(check_fused *f, const iso_fusion *fusion, const iso_case *test,
                      uint32_t number);
void check_fused_deinit(check_fused *f);
/* Which values are read outside: the last ones, or `all`; the others have memory if the kernel
 * wants it. */
void check_fused_store(check_fused *f, bool all, bool stores_inner);
/* The same case with packed weights; false when there are none. */
bool check_fused_pack(check_fused *f);

#endif
