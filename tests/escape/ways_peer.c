/*
 * A second process that holds what the first one exports, while the first one lets go. Started by fork before
 * anybody has touched the driver; the two talk over a socket pair, which also carries the descriptors.
 */
#include "ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
	uint64_t bytes; /* 0: end */
};

static int channel = -1;
static pid_t peer_pid;

static void send_descriptor(int fd, uint64_t bytes)
{
	struct message message = {bytes};
	struct iovec part = {&message, sizeof(message)};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(channel, &header, 0) < 0)
		perror("sendmsg");
}

static int receive_descriptor(uint64_t *ret_bytes)
{
	struct message message = {0};
	struct iovec part = {&message, sizeof(message)};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(channel, &header, 0) <= 0)
		message.bytes = 0;
	c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	*ret_bytes = message.bytes;
	return fd;
}

/* Imports and maps each one, and keeps it. */
static void peer_body(void)
{
	CUmemGenericAllocationHandle handle;
	CUcontext context;
	CUdeviceptr p;
	uint64_t bytes;

	if (driver_load() || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) ||
	    cu.cuCtxSetCurrent(context))
		_exit(1);
	for (;;) {
		int fd = receive_descriptor(&bytes);
		CUresult result;

		if (!bytes)
			break;
		result = cu.cuMemImportFromShareableHandle(
			&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		if (!result)
			result = cu.cuMemAddressReserve(&p, bytes, 0, 0, 0);
		if (!result)
			result = cu.cuMemMap(p, bytes, 0, handle, 0);
		close(fd);
		if (write(channel, &result, sizeof(result)) < 0)
			break;
	}
	_exit(0);
}

void peer_start(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
		return;
	peer_pid = fork();
	channel = ends[peer_pid != 0];
	close(ends[peer_pid == 0]);
	if (peer_pid == 0)
		peer_body();
}

void peer_stop(void)
{
	struct message end = {0};

	if (peer_pid <= 0)
		return;
	if (write(channel, &end, sizeof(end)) < 0)
		perror("write");
	waitpid(peer_pid, NULL, 0);
}

static CUresult export_memory(uint64_t piece, CUmemGenericAllocationHandle *ret, int *ret_fd)
{
	CUmemAllocationProp prop;
	CUresult result;

	if (!cu.cuMemExportToShareableHandle)
		return NOT_HERE;
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = way_device;
	result = cu.cuMemCreate(ret, piece, &prop, 0);
	if (!result)
		result = cu.cuMemExportToShareableHandle(
			ret_fd, *ret, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return result;
}

CUresult take_by_peer(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle;
	CUresult result, theirs;
	int fd = -1;

	*ret = piece;
	result = export_memory(piece, &handle, &fd);
	if (result)
		return result;
	send_descriptor(fd, piece);
	close(fd);
	if (read(channel, &theirs, sizeof(theirs)) != sizeof(theirs))
		theirs = NOT_HERE;
	result = cu.cuMemRelease(handle);
	return theirs ? theirs : result;
}

/* The descriptor alone keeps the memory. */
CUresult take_by_descriptor(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle;
	CUresult result;
	int fd;

	*ret = piece;
	result = export_memory(piece, &handle, &fd);
	return result ? result : cu.cuMemRelease(handle);
}
