/*
 * What a program may ask libcuota, if it wants to: version, and its group's caps and use on a device.
 *
 * No program needs this. libcuota.so is preloaded, so a program that asks looks the functions up at run
 * time and goes on without when they are not there:
 *
 *	int (*query)(int, struct cuota_info *, unsigned long) = dlsym(RTLD_DEFAULT, "cuota_query");
 *	struct cuota_info info;
 *
 *	if (query && query(0, &info, sizeof(info)) == 0)
 *		printf("%llu bytes left\n", info.mem_cap_bytes - info.mem_used_bytes);
 *
 * Both functions may be called from any thread, change neither errno nor the CUDA context, and never end
 * the program.
 */
#ifndef CUOTA_H
#define CUOTA_H

#ifdef __cplusplus
extern "C" {
#endif

#define CUOTA_NO_CAP 0xffffffffffffffffull /* mem_cap_bytes: no cap */

/* Grows only at its end; `size` says how much of it the library filled. */
struct cuota_info {
	unsigned int size;    /* bytes of this structure that are filled */
	unsigned int members; /* processes of the group on this device, this one included */
	char group[64];	      /* the group's name */
	char uuid[48];	      /* the device, as nvidia-smi -L prints it */
	unsigned long long mem_cap_bytes;     /* of the group on this device now, or CUOTA_NO_CAP */
	unsigned long long mem_used_bytes;    /* charged to the group, contexts included */
	unsigned long long mem_process_bytes; /* charged to this process */
	unsigned long long mem_process_cap_bytes; /* of this process, or CUOTA_NO_CAP */
	unsigned long long denials;		  /* allocations of the group refused so far */
	unsigned long long busy_ns;		  /* time the device worked for the group */
	unsigned long long throttled_ns;	  /* time its processes waited for their share */
	unsigned int sm_cap_bp; /* SM-time cap, hundredths of a percent; 10000 = none */
	unsigned int weight;	/* share when groups compete, 1..10000 */
	unsigned int priority;	/* 1 low, 2 normal, 3 high */
	unsigned int
		shared; /* 1: the ledger is shared; 0: the caps hold within this process alone */
};

/* "0.1.0" */
const char *cuota_version(void);

/*
 * Fills *info about this process on a CUDA device (CUDA's own index, after CUDA_VISIBLE_DEVICES); info_size
 * is sizeof(struct cuota_info) as the program knows it. After cuInit. Returns 0, or a negative errno:
 * -ENODEV when no quota is in force there (none asked for, no such device, CUDA not initialised), -EINVAL
 * when info is NULL or info_size smaller than the first version's structure.
 */
int cuota_query(int device, struct cuota_info *info, unsigned long info_size);

#ifdef __cplusplus
}
#endif

#endif
