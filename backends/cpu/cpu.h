/* cpu: the inside of the CPU backend; its own files and tests only.
 *
 * Every object begins with its device: a pointer of any object of any backend can thus be checked
 * against the device it is used on. Objects of a device form a list, so that a leak has a name. */
#ifndef ISO_BACKENDS_CPU_CPU_H
#define ISO_BACKENDS_CPU_CPU_H

#include "core/backend.h"
#include "core/os.h"
#include "core/threads.h"

enum { ISO_CPU_ALIGN = 64 };             /* of buffers that do not ask for more */

typedef struct iso_cpu_object iso_cpu_object;
struct iso_cpu_object {
    iso_device *device;
    const char *kind, *tag;              /* literals */
    iso_cpu_object *next, **link;        /* of the device's list */
};

/* Where launches copy their argument block: one per size, shared by the programs of that size,
 * because one launch runs at a time. A plan made step by step has a program per step. */
typedef struct iso_cpu_block iso_cpu_block;
struct iso_cpu_block {
    unsigned char *data;
    uint64_t bytes;
    uint32_t program_count;
    iso_cpu_block *next;
};

struct iso_device {
    iso_device *self;                    /* a device is an object of itself */
    uint32_t thread_count;
    bool is_reference_only;
    uint32_t isa_mask;                   /* instruction sets its kernels may use */
    iso_pages pages;                     /* granted wishes */
    const char *probe_text;              /* first failing set; "" */
    iso_cpu_object *objects;
    iso_cpu_block *blocks;
    iso_team *team;
    /* Guards event values and errors: what other threads may touch. */
    iso_os_monitor *monitor;
};

struct iso_buffer {
    iso_cpu_object object;
    iso_memory_kind kind;
    unsigned char *data;
    uint64_t bytes;
    bool is_import;                      /* another owner's memory, never written */
};

/* The first error of a stream since it was last handed to an event. */
typedef struct iso_cpu_failure {
    iso_status status;                   /* ISO_OK: none */
    const char *step, *op;
} iso_cpu_failure;

struct iso_stream {
    iso_cpu_object object;
    iso_cpu_failure failure;
};

struct iso_event {
    iso_cpu_object object;
    uint64_t value;
    iso_cpu_failure failure;
};

void iso_cpu_enlist(iso_device *device, iso_cpu_object *object, const char *kind,
                    const char *tag);
void iso_cpu_delist(iso_cpu_object *object);
/* "buffer workspace, event, ..." of what is alive on the device; "" if nothing is. */
void iso_cpu_leaks(const iso_device *device, char *text, size_t bytes);

/* "" when the processor and the build compute as the contract says, else the failing set. */
const char *iso_cpu_probe(void);

iso_status iso_cpu_memory(iso_device *, iso_memory_kind, iso_memory_info *, iso_error *);
iso_status iso_cpu_buffer_create(iso_device *, const iso_buffer_spec *, iso_buffer **,
                                 iso_error *);
iso_status iso_cpu_buffer_import(iso_device *, const iso_import_spec *, iso_buffer **,
                                 iso_error *);
iso_status iso_cpu_buffer_map(iso_buffer *, void **host, iso_error *);
void iso_cpu_buffer_destroy(iso_buffer **);
void iso_cpu_query(iso_device *, const iso_op_call *, iso_num_class, iso_support *);
void iso_cpu_query_fused(iso_device *, const iso_fused_call *, iso_num_class, iso_support *);
iso_status iso_cpu_record(iso_device *, const iso_step *, uint32_t count, uint64_t block_bytes,
                          iso_program **, iso_error *);
iso_status iso_cpu_launch(iso_program *, iso_stream *, const iso_launch *, iso_error *);
void iso_cpu_program_destroy(iso_program **);
iso_status iso_cpu_stream_create(iso_device *, iso_stream_kind, iso_stream **, iso_error *);
void iso_cpu_stream_destroy(iso_stream **);
iso_status iso_cpu_event_create(iso_device *, iso_event **, iso_error *);
void iso_cpu_event_destroy(iso_event **);
iso_status iso_cpu_event_wait(iso_event *, uint64_t value, uint64_t timeout_ns, iso_error *);
iso_status iso_cpu_event_signal(iso_event *, uint64_t value, iso_error *);

/* The parts of a WAIT and a SIGNAL step. wait blocks; signal hands the stream's failure over. */
void iso_cpu_event_reach(iso_event *event, uint64_t value);
iso_status iso_cpu_event_advance(iso_event *event, uint64_t value, iso_stream *stream,
                                 iso_error *error);

#endif
