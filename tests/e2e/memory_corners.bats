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

@test "two threads that make the primary context at once are charged one" {
	start A CUOTA_MEM=8G CUOTA_SIM_FAIL=cuDevicePrimaryCtxRetain:delay=100ms
	both A ctx 0
	ok A ctx 0
	used_is A 526
	for i in 1 2 3; do ok A release 0; done
	ok A ctx 0
	used_is A 526
}

@test "contexts that two threads make at once are charged both, at what they take" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=300M CUOTA_SIM_FAIL=cuCtxCreate_v2:delay=100ms
	ok A ctx 0
	used_is A 300
	both A newctx c 0
	used_is A 900
}

@test "a context is charged what it takes beside managed memory that nobody has used yet" {
	start A CUOTA_MEM=8G
	ok A ctx 0
	ok A managed x 2G
	ok A newctx c 0
	used_is A $((2048 + 2 * 526))
	ok A endctx c
	ok A ctx 0
	used_is A $((2048 + 526))
}

# ---- devices

@test "the default pool of another device is charged to that device" {
	export CUOTA_SIM_CONTEXT=0 CUOTA_SIM_DEVICES=2
	start A CUOTA_MEM=0=8G,1=1G
	ok A ctx 0
	refused A async x 2G default1
	ok A async x 512M default1
	used_is A 0
	ok A ctx 1
	used_is A 512
}

@test "before a refusal the pools of the device that is short are trimmed, not those of the stream's" {
	export CUOTA_SIM_CONTEXT=0 CUOTA_SIM_DEVICES=2
	start A CUOTA_MEM=1G
	ok A ctx 1
	ok A pool p 1
	ok A pool q 1
	ok A keep p 8G
	ok A async x 768M p
	ok A freeasync x
	ok A sync
	used_is A 768
	ok A ctx 0
	ok A async y 768M q
	used_is A 0
	ok A ctx 1
	used_is A 768
}

# ---- pools that are none

@test "an allocation from a pool that was destroyed is the driver's error and charged nothing" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A trim default 0 # made now: the simulator's would else be where the destroyed one was
	ok A pool p
	ok A endpool p
	for i in 1 2 3; do
		say A async x 1G p
		[ "${answer%% *}" = 1 ] || { echo "$answer"; false; }
	done
	used_is A 0
}

@test "an allocation that the driver refuses is charged nothing, also when the pool's size cannot be read" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0 CUOTA_SIM_FAIL=cuMemPoolGetAttribute=999,cuMemAllocAsync=2
	ok A ctx 0
	refused A async x 1G
	used_is A 0
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

@test "the end of a context ends its mipmapped arrays" {
	start A CUOTA_MEM=8G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A newctx c 0
	ok A mipmap m 64M
	ok A array a 64M
	ok A endctx c
	ok A ctx 0
	used_is A 0
	say A endmipmap m
	[ "$answer" != 0 ]
	used_is A 0
}

@test "a green context whose primary one cannot be told is refused, not let through uncharged" {
	start A CUOTA_MEM=8G CUOTA_SIM_FAIL=cuDevicePrimaryCtxRetain=2@1
	say A green g
	[ "$answer" = 2 ]
	ok A green g
	ok A ctx 0
	used_is A 526
}

@test "a primary context that may still be there stays charged" {
	start A CUOTA_MEM=8G CUOTA_SIM_FAIL=cuDevicePrimaryCtxGetState=1
	ok A ctx 0
	ok A ctx 0
	ok A alloc x 64M
	ok A release 0
	used_is A $((526 + 64))
}

# ---- descriptors

@test "a descriptor keeps the charge of memory whose handles are gone, until it is closed" {
	start A CUOTA_MEM=1G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A create h 768M
	ok A export h d
	ok A dup d e
	ok A drop h
	used_is A 768
	refused A alloc x 768M
	ok A close d
	sleep 1.5
	used_is A 768
	ok A close e
	used_is A 0
	ok A alloc x 768M
	ok A free x
	# Closed first: nothing is left to wait for.
	ok A create h 768M
	ok A export h d
	ok A close d
	ok A drop h
	used_is A 0
}

@test "memory that a descriptor keeps is had for an allocation as soon as that is closed" {
	start A CUOTA_MEM=1G CUOTA_SIM_CONTEXT=0
	ok A ctx 0
	ok A create h 768M
	ok A export h d
	ok A drop h
	ok A close d
	ok A alloc x 768M
	used_is A 768
}
