/* verify: full check of a checkpoint (iso_verify in isobit.h): what inspect checks, then every
 * value by the rules of model/admit.h. Payload is streamed through the mappings in slices. */
#ifndef ISO_CONVERT_VERIFY_H
#define ISO_CONVERT_VERIFY_H

#include "core/isobit.h"

#endif
