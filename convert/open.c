/* open: which format a path has. A directory and NAME.safetensors are safetensors; any other file
 * is a container. */
#include "convert/store_container.h"
#include "convert/store_safetensors.h"
#include "core/os.h"

#include <string.h>

iso_status iso_store_open(const char *path, iso_store **store, iso_error *error)
{
    static const char ending[] = ".safetensors";
    const size_t bytes = strlen(path), ending_bytes = sizeof ending - 1;

    if (!iso_os_is_file(path)
        || (bytes >= ending_bytes && strcmp(path + bytes - ending_bytes, ending) == 0))
        return iso_store_open_safetensors(path, store, error);
    return iso_store_open_container(path, store, error);
}
