/* model: configuration and weight inventory of a store, validated, immutable. */
#ifndef ISO_MODEL_MODEL_H
#define ISO_MODEL_MODEL_H

#include "model/weights.h"

struct iso_model {
    iso_config config;
    iso_store *store;                    /* borrowed */
    iso_weights_report report;
};

#endif
