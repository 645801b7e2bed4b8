/* config_rules: the relations between configuration values (spec/checkpoint.md 4, rules 1-8), and
 * the numeric limits this version puts on a model. */
#ifndef ISO_MODEL_CONFIG_RULES_H
#define ISO_MODEL_CONFIG_RULES_H

#include "model/config.h"

iso_status iso_config_check(const iso_config *config, const char *what, iso_error *error);

#endif
