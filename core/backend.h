/* backend: the contract between the plan and a device. core/ and model/ see devices only through
 * this; a backend sees descriptors, buffers and steps, never a graph or a model.
 *
 * Sizes are bytes, times nanoseconds. A device may be used by one thread at a time, different
 * devices are independent; `health`, `event_wait` and `event_signal` may be called from any thread.
 *
 * Streams and events:
 *  1. A stream executes its steps as if each ended before the next began.
 *  2. Between streams nothing is ordered except by WAIT and SIGNAL.
 *  3. An event is a 64-bit counter of one device that only grows; using it on another device is
 *     ISO_BAD_DEVICE.
 *  4. SIGNAL(e, v): when all earlier steps of the stream are complete and their writes visible to
 *     every later waiter, e becomes v. WAIT(e, v): no later step begins before e >= v.
 *  5. Values in steps are relative; launch.epoch is added, so one program runs many times. Epochs
 *     of one event must grow.
 *  6. `launch` may return before or after the work is done. The host may read memory only after
 *     `event_wait` on a SIGNAL behind the write, and write only when no submitted step reads it.
 *  7. The argument block is copied by `launch` before it returns.
 *
 * Errors found by a device during a run (a flag raised by a kernel, a driver error) are reported by
 * the next `event_wait` on an event signalled by that run; the outputs of that run are undefined.
 * ISO_DEVICE_LOST is sticky. */
#ifndef ISO_CORE_BACKEND_H
#define ISO_CORE_BACKEND_H

#include "core/fusion.h"
#include "core/pages.h"

enum { ISO_BACKEND_ABI = 2, ISO_STEP_TENSORS_MAX = ISO_OP_INPUTS_MAX + ISO_OP_OUTPUTS_MAX + 1 };

typedef struct iso_backend iso_backend;
typedef struct iso_device iso_device;
typedef struct iso_buffer iso_buffer;
typedef struct iso_program iso_program;
typedef struct iso_stream iso_stream;
typedef struct iso_event iso_event;

typedef enum iso_reason {
#define REASON(name, text) ISO_REASON_##name,
#include "core/reason.def"
#undef REASON
    ISO_REASON_COUNT
} iso_reason;
const char *iso_reason_text(iso_reason reason);

typedef enum iso_num_class { ISO_CLASS_EXACT, ISO_CLASS_FAST } iso_num_class;

/* Who can touch the bytes; what they mean is the layout's business.
 *   HOST    host read and write only            PINNED  host, and device over the bus
 *   DEVICE  device only                         SHARED  host and device, the same memory
 *   MAPPED  host read; device read if imported: a checkpoint file */
typedef enum iso_memory_kind {
    ISO_MEMORY_HOST, ISO_MEMORY_PINNED, ISO_MEMORY_DEVICE, ISO_MEMORY_SHARED, ISO_MEMORY_MAPPED,
    ISO_MEMORY_KIND_COUNT
} iso_memory_kind;
const char *iso_memory_kind_name(iso_memory_kind kind);

typedef struct iso_backend_options {
    uint32_t thread_count;           /* CPU: 0 = all cores this process may use */
    bool reference_only;             /* CPU: plans of references, no other kernel */
    const char *isa;                 /* CPU: strongest instruction set of isa.def; NULL: native */
    iso_pages pages;                 /* CPU: of large buffers */
} iso_backend_options;

typedef struct iso_device_info {
    char name[64];                   /* "cpu" or "cuda:0" */
    char text[128];                  /* model, driver */
    uint64_t memory_bytes;
    bool probe_passed;
    char probe_text[96];             /* first failing set, or "" */
} iso_device_info;

typedef struct iso_memory_info {
    bool present;
    char text[96];                   /* why not */
    uint64_t bytes_free, bytes_budget, buffer_max, alignment;
} iso_memory_info;

typedef struct iso_buffer_spec {
    iso_memory_kind kind;
    uint64_t bytes;                  /* > 0 */
    uint64_t alignment;              /* power of two; 0: the kind's own */
    const char *tag;                 /* literal; names the owner in reports */
} iso_buffer_spec;

typedef struct iso_import_spec {
    const void *host;                /* must outlive the buffer; never written */
    uint64_t bytes;
    uint64_t alignment;              /* what the tensors in it need */
    const char *tag;
} iso_import_spec;

/* A place in a buffer, or (buffer NULL) in the argument block. */
typedef struct iso_slice {
    iso_buffer *buffer;
    uint64_t offset;
} iso_slice;

typedef struct iso_support {
    bool ok;
    iso_reason reason;
    char text[160];                  /* refusal in words, every refused row included */
    iso_num_class num_class;
    const char *kernel;              /* "matmul_fp8/cpu/m1/portable" or "rms_norm/cpu/reference" */
    uint32_t kernel_index;           /* the backend's own; handed back in the step. Of two kernels
                                        for an operator the lower one is better */
    iso_layout layout_in[ISO_OP_INPUTS_MAX];
    bool stores_inner;               /* query_fused: the kernel needs memory for the values that
                                        live inside; else those operands are absent */
} iso_support;

typedef enum iso_step_kind {
    ISO_STEP_OP, ISO_STEP_FUSED, ISO_STEP_COPY, ISO_STEP_FILL, ISO_STEP_WAIT, ISO_STEP_SIGNAL
} iso_step_kind;

typedef struct iso_step iso_step;
struct iso_step {
    iso_step_kind kind;
    const char *name;                /* node name, for errors; lives as long as the program */
    /* OP */
    const iso_op *op;
    uint32_t kernel_index;
    uint32_t tensor_count;           /* inputs, outputs, scratch; absent: present[i] false */
    bool present[ISO_STEP_TENSORS_MAX];
    iso_slice tensor[ISO_STEP_TENSORS_MAX];
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];
    /* FUSED: the parts as OP steps (each with the kernel that would run it alone), read during
     * `record` only; kernel_index is the fusion's. */
    const iso_fusion *fusion;
    const iso_step *parts;           /* [fusion->part_count] */
    /* COPY: tensor[0] -> tensor[1]; FILL: tensor[0] with `value`, bytes a multiple of 4.
     * OP, FUSED: bytes of all operands, an upper bound, to choose grains by. */
    uint64_t bytes;
    uint32_t value;
    /* WAIT, SIGNAL */
    iso_event *event;
    uint64_t event_value;            /* relative to launch.epoch */
};

typedef struct iso_launch {
    uint64_t epoch;
    const void *block;               /* argument block: scalars, then input tensors */
    uint64_t block_bytes;
} iso_launch;

typedef enum iso_stream_kind {
    ISO_STREAM_COMPUTE, ISO_STREAM_UPLOAD, ISO_STREAM_DOWNLOAD
} iso_stream_kind;

struct iso_backend {
    uint32_t abi, struct_bytes;      /* checked before any function is called */
    const char *name;
    /* Fills up to *count infos and sets *count; 0 devices and the reason in error->text when there
     * is no driver (status ISO_OK: an absent device is no failure). Creates no context. */
    iso_status (*list)(const iso_backend_options *, iso_device_info *, uint32_t *count,
                       iso_error *);
    iso_status (*open)(const iso_backend_options *, uint32_t index, iso_device **, iso_error *);
    void (*close)(iso_device **);    /* no buffer, program, stream or event may be alive */
    iso_status (*health)(iso_device *, iso_error *);
    void (*info)(iso_device *, iso_device_info *);
    iso_status (*memory)(iso_device *, iso_memory_kind, iso_memory_info *, iso_error *);
    /* Contents are undefined. */
    iso_status (*buffer_create)(iso_device *, const iso_buffer_spec *, iso_buffer **,
                                iso_error *);
    /* Wraps host memory without copying; ISO_UNSUPPORTED with the reason when it cannot. */
    iso_status (*buffer_import)(iso_device *, const iso_import_spec *, iso_buffer **,
                                iso_error *);
    iso_status (*buffer_map)(iso_buffer *, void **host, iso_error *);   /* PINNED, SHARED */
    void (*buffer_destroy)(iso_buffer **);
    /* A pure function of the call's descriptors and the device; the unknown is unsupported. */
    void (*query)(iso_device *, const iso_op_call *, iso_num_class, iso_support *);
    /* The same for a fusion: a refusal means that its parts run one by one. NULL: no fusions. */
    void (*query_fused)(iso_device *, const iso_fused_call *, iso_num_class, iso_support *);
    /* Takes every resource the program needs; block_bytes is the size of its argument block. */
    iso_status (*record)(iso_device *, const iso_step *, uint32_t count, uint64_t block_bytes,
                         iso_program **, iso_error *);
    iso_status (*launch)(iso_program *, iso_stream *, const iso_launch *, iso_error *);
    void (*program_destroy)(iso_program **);
    iso_status (*stream_create)(iso_device *, iso_stream_kind, iso_stream **, iso_error *);
    void (*stream_destroy)(iso_stream **);
    iso_status (*event_create)(iso_device *, iso_event **, iso_error *);
    void (*event_destroy)(iso_event **);
    iso_status (*event_wait)(iso_event *, uint64_t value, uint64_t timeout_ns, iso_error *);
    iso_status (*event_signal)(iso_event *, uint64_t value, iso_error *);
};

#endif
