#!/usr/bin/env bats
# Where a charge meets another thread, another device, a second context, or a call of ours that the driver refuses.

load memory_help

setup()
{
	memory_setup
}

teardown()
{
	memory_teardown
}

# both A COMMAND...: two threads at once; the codes of both must be 0.
both()
{
	local name=$1
	shift
	ok "$name" both "$@" || return 1
	hear "$name"
	[ "${answer%% *}" = 0 ]
}

# ---- contexts

@test "the end of a context ends what is mapped into its sparse arrays" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A newctx c 0
	ok A create h 64M
	ok A sparse s
	ok A tile s h
	ok A drop h
	used_is A 64
	ok A endctx c
	ok A ctx 0
	used_is A 0
}
