// The public header in C++: it compiles twice over, and its handles are distinct types.
#include "core/isobit.h"
#include "core/isobit.h"

int main()
{
    const iso_engine_options options = {};
    const iso_error error = {};
    iso_store *store = nullptr;
    iso_model *model = nullptr;

    return !(options.thread_count == 0 && error.status == ISO_OK && store == nullptr
             && model == nullptr);
}
