#include "hooks/measure.h"

#include <errno.h>

#include "hooks/driver_bytes.h"

int measure_call(const struct mem_call *call, uint64_t *ret_bytes)
{
	struct member *member = &call->tenant->member;
	uint64_t driver, others = ledger_process_used(member);

	others = others > call->hold.bytes ? others - call->hold.bytes : 0;
	if (driver_bytes_of_process(call->tenant, &driver))
		return -ENOTSUP;
	/* Another thread took or gave memory meanwhile: then this says nothing about our call. */
	if (ledger_process_used(member) != others + call->hold.bytes)
		return -ENOTSUP;
	*ret_bytes = driver > others ? driver - others : 0;
	return 0;
}
