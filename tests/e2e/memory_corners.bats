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

# ---- threads

@test "two threads that set a limit at once are charged it once" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0 CUOTA_SIM_FAIL=cuCtxSetLimit:delay=100ms
	ok A ctx 0
	both A limit 2 264M
	used_is A 256
	# Later, and less: what goes back is what was charged.
	ok A limit 2 136M
	used_is A 128
	ok A reset 0
	ok A ctx 0
	used_is A 0
}

@test "a limit that is set below its default and back is charged nothing" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A limit 0 512
	ok A limit 0 1024
	ok A limit 2 1M
	ok A limit 2 8M
	used_is A 0
	ok A limit 2 72M
	used_is A 64
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
