/*
 * User objects: reference counts with a function to call at the end, held by programs and graphs.
 */
#include "graph.h"
#include "entries.h"

#include <stdlib.h>

struct user {
	struct object object;
	void *data;
	CUhostFn destroy;
	uint64_t refs;
};

struct user_ref {
	struct user_ref *next;
	struct user *user;
	unsigned count;
};

static struct user *user_of(CUuserObject handle)
{
	return object_check(handle, OBJECT_USER);
}

static void release(struct user *user, uint64_t count)
{
	user->refs -= count < user->refs ? count : user->refs;
	if (user->refs)
		return;
	user->destroy(user->data);
	object_destroy(user);
}

CUresult sim_cuUserObjectCreate(CUuserObject *ret_object, void *data, CUhostFn destroy,
				unsigned int refs, unsigned int flags)
{
	if (!ret_object || !destroy || !refs || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct user *user = object_new(OBJECT_USER, sizeof(*user));
	user->data = data;
	user->destroy = destroy;
	user->refs = refs;
	pthread_mutex_unlock(&core_lock);
	*ret_object = (CUuserObject)user;
	return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
	struct user *user = user_of(handle);
	if (!user || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	user->refs += count;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
	struct user *user = user_of(handle);
	if (!user || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	release(user, count);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
				     unsigned int flags)
{
	struct graph *graph = graph_of(graph_handle);
	struct user *user = user_of(handle);
	if (!graph || !user || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct user_ref *ref = calloc(1, sizeof(*ref));
	ref->user = user;
	ref->count = count;
	ref->next = graph->users;
	graph->users = ref;
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		user->refs += count;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count)
{
	struct graph *graph = graph_of(graph_handle);
	struct user *user = user_of(handle);
	if (!graph || !user || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	for (struct user_ref *ref = graph->users; ref; ref = ref->next)
		if (ref->user == user && ref->count >= count) {
			ref->count -= count;
			break;
		}
	release(user, count);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

void users_release(struct graph *graph)
{
	while (graph->users) {
		struct user_ref *ref = graph->users;
		graph->users = ref->next;
		if (ref->count)
			release(ref->user, ref->count);
		free(ref);
	}
}
