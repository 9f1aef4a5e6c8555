/*
 * What the files of the simulated libcuda share: its objects, its locks, and who calls whom.
 *
 * Objects are handed out as CUDA handles. Their memory is never given back to malloc, only reused
 * for objects of the same kind, so that a stale handle can be recognised instead of crashing.
 *
 * Lock ranks, outermost first:
 *  driver_lock     shared by calls that enqueue, taken alone (for a moment) by those that allocate,
 *                  create or load: see entry.c;
 *  stream->lock    one at a time enqueues into a stream;
 *  core_lock       every private object below;
 *  the lock of the shared state.
 * A launch that waits for room in a full stream keeps the first two, and what waits then is what
 * waits with the real driver. Nothing sleeps with one of the last two held.
 */
#ifndef SIM_H
#define SIM_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared_state.h"

#define SIM_EXPORT __attribute__((visibility("default")))
#define MIB	   (1024ull * 1024ull)

enum object_kind {
	OBJECT_CONTEXT = 0x51c7a001,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_LIBRARY,
	OBJECT_KERNEL,
	OBJECT_POOL,
	OBJECT_ARRAY,
	OBJECT_MIPMAP,
	OBJECT_HANDLE, /* physical memory of the VMM calls */
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_GREEN,
	OBJECT_DESC, /* of device resources */
	OBJECT_EXTERNAL,
	OBJECT_SEMAPHORE,
	OBJECT_USER,
	OBJECT_LINK,
	OBJECT_TEXTURE,
	OBJECT_KIND_END,
};

struct object {
	uint32_t kind; /* 0 when destroyed */
	struct object *next_free;
};

struct context;
struct stream;
struct event;
struct graph;
struct graph_node;
struct capture;

/* ---- devices ---- */

struct device {
	uint32_t physical;	 /* index in the shared state */
	struct context *primary; /* live primary context or NULL */
	unsigned primary_refs;
	unsigned primary_flags;
	struct pool *default_pool, *current_pool;
	uint64_t graph_reserved, graph_reserved_high, graph_used, graph_used_high;
};

/* ---- contexts ---- */

struct context {
	struct object object;
	CUdevice device;
	uint32_t shared; /* its slot in the shared state */
	unsigned flags, api_version;
	uint64_t id;
	bool primary;
	struct green *green;		  /* what it was made from, for green contexts */
	struct context *host;		  /* the primary context behind a green one; else itself */
	uint64_t own_bytes;		  /* device memory of the context itself */
	uint64_t stack_bytes, heap_bytes; /* taken for the limits below */
	size_t limits[16];
	bool heap_fixed, fifo_fixed; /* a kernel that uses it was launched */
	uint64_t noted;		     /* ring places whose completion we have seen */
	struct op *in_ring[SIM_RING];
	struct stream *streams; /* legacy and per-thread ones included */
	struct stream *legacy;
	struct context *next;
	struct module *modules;
	struct array *arrays;
	struct mipmap *mipmaps;
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint32_t peers; /* bits of devices whose memory it may use */
	uint32_t grown; /* bits of rules of growth.c that have been applied */
};

/* ---- streams and what stands in them ---- */

enum op_kind {
	OP_DEVICE, /* kernel or other device time, perhaps with an effect at its end */
	OP_EVENT,  /* record */
	OP_WAIT_EVENT,
	OP_WAIT_VALUE,
	OP_WRITE_VALUE,
	OP_HOST, /* host function or callback */
	OP_JOIN, /* order against another stream */
};

struct op {
	struct op *next;
	struct op *next_done;
	enum op_kind kind;
	bool submitted; /* has an item in the context's ring */
	bool running;	/* host function handed to the pump */
	bool finished;	/* host function returned */
	bool in_graph;	/* host side effects only; the graph paid the device time */
	uint64_t place; /* in the ring */
	uint64_t cost_ns;
	uint64_t arrive_ns; /* not on the device before this */
	uint64_t done_ns;
	void (*effect)(void *data); /* at its simulated end; owns data */
	void *data;
	struct event *event;
	uint64_t generation;  /* of the event */
	struct stream *other; /* join */
	uint64_t other_id, other_seq;
	CUdeviceptr address; /* wait or write value */
	uint64_t value;
	unsigned value_flags;
	bool wide; /* 64 bits */
	CUhostFn host;
	CUstreamCallback callback;
	void *user;
};

struct stream {
	struct object object;
	pthread_mutex_t lock; /* held while something is being added */
	struct context *context;
	struct stream *next;
	uint64_t id;
	unsigned flags;
	int priority;
	bool destroyed; /* waits for its last operation */
	bool is_legacy, is_thread;
	pthread_t thread;	    /* of a per-thread default stream */
	struct op *head, *tail;	    /* not yet retired */
	struct op *unsubmitted;	    /* first of them that is not in the ring */
	uint64_t enqueued, retired; /* counts of operations */
	uint64_t submitted;
	bool at_wait; /* counted in the shared context's `blocked` */
	uint64_t last_done_ns;
	struct capture *capture;
	struct graph_node **capture_deps; /* what the next captured node waits for */
	size_t capture_dep_count;
	struct green *green;
};

struct event {
	struct object object;
	struct context *context;
	unsigned flags;
	bool recorded, done, destroyed;
	uint64_t generation; /* of the latest record */
	unsigned pending;    /* record operations that refer to it */
	uint64_t time_ns;
	struct stream *stream; /* of the latest record, while not done */
	uint64_t stream_id;
	uint64_t stream_seq;
	struct capture *capture; /* recorded into a capture, perhaps one that has ended */
	uint64_t capture_id;
	struct graph_node **capture_nodes;
	size_t capture_count;
};

/* ---- process-wide ---- */

struct sim {
	int driver_version;
	uint32_t slot; /* process slot in the shared state */
	int device_count;
	struct device device[SIM_MAX_DEVICES];
	struct context *contexts;
	uint64_t next_id;
};

extern struct sim sim;
extern pthread_mutex_t core_lock;
extern pthread_rwlock_t driver_lock;

/* init.c: is the driver usable in this process? */
bool sim_ready(void);
CUresult sim_init(void);
int sim_driver_version(void);

/* object.c; needs core_lock */
void *object_new(enum object_kind kind, size_t size);
void object_destroy(void *object);
/* NULL unless `handle` is a live object of that kind. */
void *object_check(const void *handle, enum object_kind kind);

/* growth.c: what the driver takes for itself beside this call. Takes core_lock. */
void growth_before(const char *name, struct context *context);

/* entry.c */
/* EXCLUSIVE: a context, and a moment alone in the driver. */
enum entry_needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT, NEEDS_EXCLUSIVE };
struct entry {
	const char *name;
	void *function;
	unsigned since; /* CUDA version that brought this ABI */
	uint8_t needs;
	bool per_thread; /* _ptds or _ptsz */
};
extern const struct entry entry_table[];
extern const unsigned entry_count;
CUresult entry_begin(unsigned index);
/* Waits until no launch waits for room. */
void entry_pass_alone(void);
/* What a NULL stream means for the entry this thread came through. */
extern __thread bool entry_per_thread;

/* device.c */
CUresult device_setup(void);
bool device_valid(CUdevice device);
bool device_take(CUdevice device, uint64_t bytes);
void device_give(CUdevice device, uint64_t bytes);
void device_memory(CUdevice device, uint64_t *ret_free, uint64_t *ret_total);
/* visible.c: CUDA_VISIBLE_DEVICES; fills physical indices, returns how many, -1 if one is twice. */
int visible_devices(uint32_t ret_physical[SIM_MAX_DEVICES]);

/* context.c */
struct context *context_current(void);
void context_set_current(struct context *context);
struct context *context_of(CUcontext handle);
CUresult context_create(CUdevice device, unsigned flags, struct context **ret_context);
void context_destroy(struct context *context);
void context_drop_current(struct context *context);
CUcontext context_handle(struct context *context);
/* primary.c; need core_lock, which a release may leave for a while */
CUresult primary_retain(CUdevice device, struct context **ret_context);
void primary_release(CUdevice device);
/* cuCtxSynchronize on it, capture rules included. */
CUresult sync_context(struct context *context);

/* stream.c; need core_lock unless said otherwise */
struct stream *stream_new(struct context *context, unsigned flags, int priority);
/* The stream a handle means now; with NULL the default stream of the current context. */
CUresult stream_resolve(CUstream handle, struct stream **ret_stream);
void stream_free_if_done(struct stream *stream);

/* queue.c */
struct op *op_new(enum op_kind kind, uint64_t cost_ns);
/* Appends an operation; waits for room. Takes the locks itself; gives the operation's number. */
uint64_t queue_add(struct stream *stream, struct op *op);
/* Moves everything of a context as far as the present allows. Needs core_lock. */
void queue_progress(struct context *context);
/* Waits for it, without locks. */
void queue_wait(struct stream *stream, uint64_t seq);
/* When `seq` may be over, at the earliest; QUEUE_UNKNOWN if that is not up to the device. */
#define QUEUE_UNKNOWN 0
uint64_t queue_estimate(struct stream *stream, uint64_t seq);
void queue_wait_context(struct context *context);
/* Throws away what a dying context still has. Needs core_lock. */
void queue_discard(struct context *context);
/* Tells waiters that something moved; with core_lock. */
extern pthread_cond_t queue_changed;
bool op_takes_device(const struct op *op);
void queue_nap(uint64_t ns);
/* Lets time pass until then, or until something moves. Leaves and retakes core_lock. */
void queue_pause(uint64_t when_ns);

/* memory_*.c */
struct range;
/* A box of bytes: `depth` slices (0 means 1) of `height` rows of `width` bytes. */
struct copy_rows {
	CUdeviceptr to, from;
	uint64_t to_pitch, from_pitch, width, height;
	uint64_t to_slice, from_slice, depth;
	bool to_array, from_array;   /* device memory behind an array */
	bool to_device, from_device; /* said to be memory the driver knows */
};
struct fill_rows {
	CUdeviceptr to;
	uint64_t to_pitch, width, height;
	uint32_t value;
	unsigned value_bytes;
};
CUresult copy_rows(CUstream stream, const struct copy_rows *copy, bool synchronous);
CUresult fill_rows(CUstream stream, const struct fill_rows *fill, bool synchronous);
/* Memory behind a driver pointer, or NULL. Takes core_lock. */
void *memory_view(CUdeviceptr address);
/* Frees a range of any kind that cuMemFree takes. Needs core_lock. */
CUresult memory_free_any(struct range *range);
void memory_release_context(struct context *context);
/* pool.c; need core_lock: gives up what pools keep unused; false when nothing was. */
bool pools_trim_device(CUdevice device);
void pool_free_now(struct range *range);
/* graph_memory.c; needs core_lock: an allocation node's memory is free for the next launch. */
CUresult graph_memory_free(struct range *range);
/* After a synchronisation: pools shrink to their thresholds. */
void pools_settle(void);
void modules_release_context(struct context *context);
void arrays_release_context(struct context *context);

/* pump.c: needs core_lock */
void pump_wake(void);
bool op_needs_pump(const struct op *op);

/* wait_value.c */
bool wait_value_open(const struct op *op);
void wait_value_write(const struct op *op);

/*
 * capture.c and capture_node.c: what capturing changes; none of it needs a lock held. The first
 * ones return an error when the call is not allowed now, and invalidate what it hurts.
 */
CUresult capture_forbids(void); /* for calls no capture allows */
CUresult capture_forbids_stream(struct stream *stream);
/* The legacy stream may not be used while a blocking stream of its context captures. */
CUresult capture_forbids_legacy(struct stream *stream);
bool capture_is_on(struct context *context);
CUresult capture_forbids_context(struct context *context);
CUresult capture_unsupported(struct stream *stream);
void capture_abandon(struct stream *stream);
CUresult capture_checks_event(struct event *event);
CUresult capture_event_record(struct stream *stream, struct event *event, bool external);
CUresult capture_event_wait(struct stream *stream, struct event *event, bool external);
CUresult capture_alloc(struct stream *stream, uint64_t bytes, CUdevice device,
		       CUdeviceptr *ret_address);
CUresult capture_free(struct stream *stream, CUdeviceptr address);
CUresult capture_mem_op(struct stream *stream, const struct op *op);
struct launch;
CUresult capture_kernel(struct stream *stream, const struct launch *launch);
CUresult capture_child(struct stream *stream, struct graph *graph);
CUresult capture_host(struct stream *stream, CUhostFn function, void *user);
CUresult capture_copy(struct stream *stream, const struct copy_rows *copy);
CUresult capture_fill(struct stream *stream, const struct fill_rows *fill);

/* module.c: the whole file and a final zero, malloc'ed; NULL when it cannot be read */
char *read_file(const char *path);

/* event.c */
void event_unpin(struct event *event);
void event_retire(struct op *op);
bool event_done(struct event *event, uint64_t generation);

#endif
