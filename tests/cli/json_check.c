/* json_check: reads JSON from standard input; exit code 0 if it is valid, no key twice. */
#include "core/json.h"

#include <stdio.h>

int main(void)
{
    static char text[1 << 22];
    const size_t bytes = fread(text, 1, sizeof text, stdin);
    iso_json_doc *doc = NULL;
    iso_error error = {.text = ""};
    const iso_status status = iso_json_parse(text, bytes, "standard input", &doc, &error);

    if (status != ISO_OK)
        fprintf(stderr, "%s\n", error.text);
    iso_json_free(&doc);
    return status != ISO_OK;
}
