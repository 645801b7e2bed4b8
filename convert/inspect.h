/* inspect: describes a checkpoint as text or JSON (iso_inspect in isobit.h). Headers and the
 * configuration are read, no payload. */
#ifndef ISO_CONVERT_INSPECT_H
#define ISO_CONVERT_INSPECT_H

#include "core/isobit.h"

#endif
