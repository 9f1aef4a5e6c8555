/*
 * The state that simulated drivers of different processes share: one file, mapped by all.
 *
 * Everything in it is plain data at fixed places, so that a process killed at any instant leaves
 * at worst one stale counter, which the next holder of the lock repairs (state_lock). A process
 * slot belongs to whoever holds the kernel lock on its byte of the file (an OFD lock, which the
 * kernel releases at death); process ids are only for display.
 *
 * Lock rank: the last one. No other lock is taken, and nothing sleeps, while it is held.
 */
#ifndef SIM_SHARED_STATE_H
#define SIM_SHARED_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SIM_MAX_DEVICES = 32,
	SIM_MAX_PROCESSES = 1024,
	SIM_MAX_CONTEXTS = 2048,
	SIM_RING = 1024,       /* device operations of one context that are not yet over */
	SIM_MAX_SHARES = 4096, /* allocations known to more than one process */
	SIM_NOBODY = SIM_MAX_PROCESSES,
	SIM_ACTIVE_WORDS = SIM_MAX_CONTEXTS / 64,
};

/* What the simulated machine looks like; written by the first process that opens the file. */
struct sim_machine {
	uint32_t device_count;
	uint32_t mig, mps;
	uint32_t sms[SIM_MAX_DEVICES];
	uint64_t memory_bytes[SIM_MAX_DEVICES];	  /* what CUDA shows as the total */
	uint64_t reserved_bytes[SIM_MAX_DEVICES]; /* what NVML shows on top of it */
	uint64_t slice_ns, switch_ns;
};

/* One device operation. Written by the owner of the context, `done_ns` by whoever advances. */
struct sim_item {
	uint64_t arrive_ns;
	uint64_t cost_ns;
	uint64_t done_ns; /* 0 until it is over */
};

/* How far a context has come: item `next` still needs `left_ns`; its last one ended at `free_ns`. */
struct sim_cursor {
	uint64_t next;
	uint64_t left_ns;
	uint64_t free_ns;
};

struct sim_context {
	uint32_t process; /* slot + 1; 0: free */
	uint32_t device;
	uint32_t blocked; /* streams that stand at a closed wait */
	uint64_t tail;	  /* items ever pushed */
	struct sim_item ring[SIM_RING];
};

struct sim_usage {
	uint64_t memory_bytes;
	uint64_t busy_ns;
	uint64_t bucket_busy_ns; /* busy_ns when the current utilisation bucket began */
	uint32_t last_busy_pct;	 /* of the last full bucket */
	uint32_t contexts;
};

struct sim_process {
	uint32_t used;
	int32_t pid;
	uint64_t start_ns;
	uint64_t birth; /* unlike that of any other process ever */
	char name[64];
	struct sim_usage usage[SIM_MAX_DEVICES];
};

/* What the scheduler of one device may change besides the cursors; a copy of it can look ahead. */
struct sim_line {
	uint64_t now_ns;
	uint64_t slice_end_ns;
	uint64_t switch_end_ns;
	uint32_t current;  /* context + 1; 0: none yet */
	uint32_t incoming; /* context + 1 while switching */
};

struct sim_device {
	struct sim_line line;
	uint64_t orphan_bytes; /* of shares that belong to nobody */
	uint64_t busy_ns;
	uint64_t bucket_start_ns, bucket_busy_ns;
	uint32_t last_busy_pct;
	uint64_t active[SIM_ACTIVE_WORDS]; /* contexts with items */
};

/*
 * A device allocation that was exported: it lives until the last process lets go of it and the
 * last descriptor that stands for it is closed. Then its bytes belong to nobody (owner NOBODY) but
 * are still taken.
 */
struct sim_share {
	uint32_t used;
	uint32_t device;
	uint32_t exported; /* descriptors may stand for it: they lock a byte of the file */
	uint32_t owner;	   /* process slot the bytes are charged to */
	uint32_t generation;
	int32_t holder_pid, holder_fd; /* whose memory file has the contents; 0: none */
	uint64_t bytes;
	uint32_t refs[SIM_MAX_PROCESSES];
};

struct sim_state {
	uint64_t magic;
	uint64_t layout;
	pthread_mutex_t lock, beside; /* see shared_lock.c */
	int32_t lock_owner;	      /* thread that has `lock`, 0 when nobody */
	uint64_t lock_space;	      /* the PID namespace in which it has that number */
	int32_t stopped_owner; /* set while that thread is stopped: `beside` counts instead */
	struct sim_machine machine;
	uint32_t process_top, context_top, share_top; /* slots ever used: scans stay short */
	uint64_t births;			      /* processes ever registered */
	struct sim_device device[SIM_MAX_DEVICES];
	struct sim_process process[SIM_MAX_PROCESSES];
	struct sim_cursor cursor[SIM_MAX_CONTEXTS];
	struct sim_context context[SIM_MAX_CONTEXTS];
	struct sim_share share[SIM_MAX_SHARES];
};

/* The mapped file; NULL before state_open(). */
extern struct sim_state *sim_shared;

/* Maps the file, creating it when needed. 0 or -errno. */
int state_open(void);
/* Takes a process slot for this process; it is kept until death. Returns it or -errno. */
int state_register(void);
/* After fork: the child gives up what it inherited. */
void state_forget(void);

void state_lock(void);
void state_unlock(void);

/* These need the lock. */
void state_reap(void);
uint64_t state_used_bytes(uint32_t device);
bool state_take_bytes(uint32_t process, uint32_t device, uint64_t bytes);
void state_give_bytes(uint32_t process, uint32_t device, uint64_t bytes);
int state_context_new(uint32_t process, uint32_t device);
void state_context_free(uint32_t context);
int state_share_new(uint32_t process, uint32_t device, uint64_t bytes);
bool state_share_get(uint32_t share, uint32_t generation, uint32_t process);
/* Drops one reference of a process; the bytes follow the ones who remain. */
void state_share_put(uint32_t share, uint32_t process);
/* A new descriptor that keeps the share alive while any copy of it is open; or -errno. */
int state_share_export(uint32_t share);
/* Which share a descriptor stands for, or -1. */
int state_share_of(int fd);
/* A file with its contents, kept open while this process refers to it; or -errno. Needs no lock. */
int state_share_data(uint32_t share);

/* Device time (shared_time.c); these need the lock too. */
uint64_t time_now_ns(void);
void time_advance(uint32_t device, uint64_t now_ns);
/* Appends an operation; returns its place. The caller made sure that there is room. */
uint64_t time_push(uint32_t context, uint64_t arrive_ns, uint64_t cost_ns);
/* When the item at `place` ends if nobody adds work, or a lower bound of it. */
uint64_t time_look_ahead(uint32_t context, uint64_t place);
void time_forget(uint32_t context);

/* Environment (shared_config.c). */
void config_read_machine(struct sim_machine *ret_machine);
bool config_parse_size(const char *text, uint64_t *ret_bytes, const char **ret_end);
void config_device_uuid(const struct sim_machine *machine, uint32_t device, uint8_t ret_uuid[16]);
void config_uuid_text(const struct sim_machine *machine, uint32_t device, char ret_text[48]);
unsigned config_pci_bus(uint32_t device);
int config_driver_version(void);

/* shared_fail.c: failure injection. The environment variable that holds the rules, defined by each library: */
extern const char fail_variable[];
bool fail_configured(void);
/* The code to return instead of calling `name`, or 0. May sleep. */
int fail_consult(const char *name);

#endif
