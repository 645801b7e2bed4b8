/* The public header stands alone: it compiles as pedantic C11 as the first and only include, twice,
 * and its constants are what the documentation says. Nothing is linked; header_test.cc is the same
 * in C++. */
#include "core/isobit.h"
/* Twice is once. */
#include "core/isobit.h"

_Static_assert(ISO_OK == 0, "success is zero");
_Static_assert(ISO_BAD_ARGUMENT < 0 && ISO_CANCELLED < 0, "failures are negative");
_Static_assert(sizeof(ISO_VERSION) > 1, "the version is a literal");
_Static_assert(sizeof(ISO_NUMERICS_ID) > 1, "the contract's name is a literal");
_Static_assert(ISO_ENCODE_PLAIN == 0, "text is plain unless the caller says otherwise");

int main(void)
{
    /* Zero means the default: a caller names only what it wants. */
    const iso_engine_options options = {.device = "cpu"};
    const iso_sampling greedy = {.top_p = 1.0f};
    const iso_chat_options chat = {.thinking = true};
    const iso_batch_item item = {.count = 1};
    const iso_error error = {.status = ISO_OK};

    return !(options.thread_count == 0 && greedy.temperature == 0.0f && chat.thinking
             && item.session == NULL && error.text[0] == '\0');
}
