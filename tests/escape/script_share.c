/* Memory between two `escape script` processes: descriptors over a socket, IPC handles as text. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

/* Waits for the receiver, a second at most. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	for (int i = 0; i < 1000; i++) {
		if (!connect(s, (struct sockaddr *)&address, sizeof(address)))
			return s;
		usleep(1000);
	}
	close(s);
	return -1;
}

static int accept_at(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), s;

	unlink(path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1)) {
		perror(path);
		exit(3);
	}
	s = accept(listener, NULL, NULL);
	close(listener);
	return s;
}

static ssize_t transfer(int s, int *fd, int send)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {&byte, 1};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	ssize_t done;

	if (send) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), fd, sizeof(*fd));
		return sendmsg(s, &header, 0);
	}
	done = recvmsg(s, &header, 0);
	c = CMSG_FIRSTHDR(&header);
	if (c)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return done;
}

static CUresult by_descriptor(char **argv)
{
	CUmemGenericAllocationHandle handle;
	int fd = -1, s;
	CUresult result;

	if (!strcmp(argv[0], "send")) {
		result = cu.cuMemExportToShareableHandle(
			&fd, *script_name(argv[1]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (result)
			return result;
		s = connect_to(argv[2]);
		if (transfer(s, &fd, 1) < 0)
			result = CUDA_ERROR_OPERATING_SYSTEM;
	} else {
		s = accept_at(argv[2]);
		transfer(s, &fd, 0);
		result = cu.cuMemImportFromShareableHandle(
			&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		if (!result)
			*script_name(argv[1]) = handle;
	}
	close(fd);
	close(s);
	return result;
}

CUresult script_share(int argc, char **argv, char *note, size_t note_bytes)
{
	CUipcMemHandle handle;
	CUdeviceptr p = 0;
	CUresult result;

	(void)argc;
	if (!strcmp(argv[0], "send") || !strcmp(argv[0], "receive"))
		return by_descriptor(argv);
	if (!strcmp(argv[0], "export")) {
		int fd = -1;

		result = cu.cuMemExportToShareableHandle(
			&fd, *script_name(argv[1]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		*script_name(argv[2]) = (uint64_t)fd;
		return result;
	}
	if (!strcmp(argv[0], "dup") || !strcmp(argv[0], "close")) {
		int fd = (int)*script_name(argv[1]);

		if (*argv[0] == 'd')
			*script_name(argv[2]) = (uint64_t)dup(fd);
		else
			close(fd);
		return CUDA_SUCCESS;
	}
	if (!strcmp(argv[0], "ipcclose"))
		return cu.cuIpcCloseMemHandle(*script_name(argv[1]));
	if (!strcmp(argv[0], "ipcget")) {
		result = cu.cuIpcGetMemHandle(&handle, *script_name(argv[1]));
		for (size_t i = 0; !result && i < sizeof(handle) && 2 * i + 2 < note_bytes; i++)
			snprintf(note + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
		return result;
	}
	if (strcmp(argv[0], "ipcopen"))
		return (CUresult)9999;
	for (size_t i = 0; i < sizeof(handle); i++)
		((unsigned char *)&handle)[i] = (unsigned char)strtoul(
			(char[]){argv[2][2 * i], argv[2][2 * i + 1], 0}, NULL, 16);
	result = cu.cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (!result)
		*script_name(argv[1]) = p;
	return result;
}
