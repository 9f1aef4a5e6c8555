#!/usr/bin/env bats
# What is charged, when, and to whom; one process on the simulated driver. CUOTA_SIM_CONTEXT=0 where
# the context would only be in the way.

load memory_help

setup()
{
	memory_setup
}

teardown()
{
	memory_teardown
}

bare()
{
	export CUOTA_SIM_CONTEXT=0
	start A "$@"
	ok A ctx 0
	used_is A 0
}

# MEM-3: each family raises "used" once and lowers it once.
once()
{
	local take=$1 give=$2 bytes=$3
	bare CUOTA_MEM=8G
	ok A "$take"
	used_is A "$bytes"
	ok A "$give"
	ok A sync
	used_is A 0
	# And once more: nothing is left over from the first time.
	ok A "$take"
	used_is A "$bytes"
	ok A "$give"
	ok A sync
	used_is A 0
}

@test "cuMemAlloc is charged once and refunded once" { once "alloc x 64M" "free x" 64; }
@test "cuMemAlloc of the old ABI too" { once "alloc1 x 64M" "free1 x" 64; }
@test "managed memory too" { once "managed x 64M" "free x" 64; }
@test "an array too" { once "array x 64M" "endarray x" 64; }
@test "stream-ordered memory by what the pool reserves" { once "async x 64M" "freeasync x" 64; }
@test "stream-ordered memory freed by the synchronous free" { once "async x 64M" "free x" 64; }
@test "cuMemCreate too" { once "create x 64M" "drop x" 64; }
@test "the globals of a module too" { once "module x 64M" "endmodule x" 64; }

@test "a mipmapped array is charged all its levels" {
	bare CUOTA_MEM=8G
	ok A mipmap x 64M
	used A
	[ "$answer" -ge 80 ] && [ "$answer" -le 96 ]
	ok A endmipmap x
	used_is A 0
}

@test "pitched memory is charged at the pitch, not at the width" {
	bare CUOTA_MEM=8G
	ok A pitch x 1 131072
	used A
	[ "$answer" -ge 64 ]
	ok A free x
	used_is A 0
}

@test "a hundred small allocations cost the page they share" {
	bare CUOTA_MEM=8G
	for i in {1..100}; do ok A "alloc s$i 512"; done
	used_is A 2
	for i in {1..100}; do ok A "free s$i"; done
	used_is A 0
}

@test "a context is charged what it takes, and each further one" {
	start A CUOTA_MEM=8G
	ok A ctx 0
	used_is A 526
	ok A newctx c 0
	used_is A 1052
	ok A endctx c
	ok A ctx 0
	used_is A 526
}

@test "a context that ends gives back all that lived in it" {
	bare CUOTA_MEM=8G
	ok A newctx c 0
	ok A alloc x 64M
	ok A array y 64M
	ok A module z 64M
	used_is A 192
	ok A endctx c
	ok A ctx 0
	used_is A 0
}

@test "the last release of the primary context gives back all, a reset too" {
	start A CUOTA_MEM=8G
	ok A ctx 0
	ok A alloc x 64M
	ok A release 0
	ok A ctx 0
	used_is A 526
	ok A alloc x 64M
	ok A reset 0
	ok A ctx 0
	used_is A 526
}

@test "heap and printf buffer are charged by what they grow" {
	bare CUOTA_MEM=2G
	ok A limit 2 512M
	used A
	[ "$answer" -ge 500 ] && [ "$answer" -le 513 ]
	ok A limit 1 256M
	used A
	[ "$answer" -ge 750 ] && [ "$answer" -le 770 ]
	refused A limit 2 8G
	refused A limit 1 8G
	refused A limit 0 64K
}

# MEM-1
@test "cuMemCreate before any context and on a fresh thread is charged to the property's device" {
	export CUOTA_SIM_CONTEXT=0
	start A CUOTA_MEM=8G
	ok A create x 2M
	ok A thread create y 2M
	ok A ctx 0
	used_is A 4
	ok A thread drop x
	ok A drop y
	used_is A 0
}

@test "host locations are not charged and pass through" {
	bare CUOTA_MEM=1M
	say A create x 2M 2 0
	[ "$answer" != 2 ]
	say A create y 2M 3 0
	[ "$answer" != 2 ]
	say A create z 2M 4 0
	[ "$answer" != 2 ]
	used_is A 0
}

@test "a device that does not exist is the driver's to refuse, unchanged" {
	bare CUOTA_MEM=8G
	say A create x 2M 1 99
	with=$answer
	PRELOAD= start B
	say B ctx 0
	say B create x 2M 1 99
	[ "$with" = "$answer" ]
	say A create x 2M 1 -1
	say B create x 2M 1 -1
	used_is A 0
}

# MEM-4, MEM-5
@test "a double free is the driver's error and changes nothing" {
	bare CUOTA_MEM=8G
	ok A alloc x 64M
	ok A alloc y 64M
	ok A free x
	say A free x
	[ "$answer" != 0 ]
	say A freeasync x
	[ "$answer" != 0 ]
	used_is A 64
	ok A free y
	used_is A 0
}

@test "freeing nothing is fine, as in the driver" {
	bare CUOTA_MEM=8G
	ok A free 0
	used_is A 0
}

@test "memory of a graph is freed by the plain free" {
	bare CUOTA_MEM=8G
	ok A graph g 64M p
	ok A launch g
	used_is A 64
	ok A free p
	ok A graphtrim
	used_is A 0
}

@test "a free on another thread and in another context finds its charge" {
	bare CUOTA_MEM=8G
	ok A alloc x 64M
	ok A newctx c 0
	ok A thread free x
	used_is A 0
	ok A ctx 0
}

@test "an allocation is of the context that is current, whatever was current before" {
	export CUOTA_SIM_CONTEXT=0 CUOTA_SIM_DEVICES=2
	start A CUOTA_MEM=8G
	ok A ctx 0
	ok A alloc x 64M
	# Another context of that device, and the memory goes with it.
	ok A newctx c 0
	ok A alloc y 64M
	used_is A 128
	ok A endctx c
	ok A ctx 0
	used_is A 64
	# Another device, and back.
	ok A ctx 1
	used_is A 0
	ok A alloc z 128M
	used_is A 128
	ok A ctx 0
	used_is A 64
	ok A alloc y 64M
	ok A ctx 1
	ok A free x
	used_is A 128
	ok A release 1
	ok A ctx 0
	used_is A 64
	ok A free y
	used_is A 0
}

@test "every allocation is refunded by every free that the driver accepts" {
	bare CUOTA_MEM=8G
	for take in alloc alloc1 managed async; do
		for give in free free1 freeasync; do
			ok A $take x 64M
			say A $give x
			if [ "$answer" != 0 ]; then
				used A
				[ "$answer" -ge 64 ]
				ok A free x
			fi
			ok A sync
			used_is A 0 || { echo "$take, $give"; false; }
		done
	done
}

# MEM-6
@test "a refusal is out of memory everywhere, touches no output, and the next small one succeeds" {
	bare CUOTA_MEM=1G
	refused A alloc x 2G
	refused A managed x 2G
	refused A async x 2G
	refused A create x 2G
	refused A array x 2G
	refused A mipmap x 2G
	refused A module x 2G
	ok A graph g 2G
	refused A launch g
	ok A alloc x 64M
	ok A free x
	used_is A 0
}

@test "over the cap a context is refused as out of memory too" {
	start A CUOTA_MEM=1G
	ok A ctx 0
	refused A newctx c 0
	used_is A 526
}

@test "the loop of a caching allocator works: until refused, free, once more" {
	bare CUOTA_MEM=1G
	for i in 1 2 3 4; do ok A alloc "x$i" 256M; done
	refused A alloc x5 256M
	ok A free x1
	ok A alloc x5 256M
	refused A alloc x6 2M
}

@test "a cap that is full to the last page refuses one byte and grants it after a free" {
	bare CUOTA_MEM=64M
	ok A alloc x 62M
	ok A alloc y 2M
	refused A alloc z 1
	ok A free y
	ok A alloc z 1
}

# MEM-7
@test "a pool that keeps everything serves the same block a hundred times under its cap" {
	bare CUOTA_MEM=1G
	ok A keep default 1000G
	for i in {1..100}; do
		ok A async x 256M
		ok A freeasync x
	done
	used_is A 256
	ok A trim default 0
	used_is A 0
}

@test "what a pool keeps is given up before another allocation is refused" {
	bare CUOTA_MEM=1G
	ok A keep default 1000G
	ok A async x 768M
	ok A freeasync x
	ok A sync
	used_is A 768
	ok A alloc y 512M
	used A
	[ "$answer" -le 1024 ]
	ok A free y
}

@test "more pools than there are accounts for are refused, not let through" {
	bare CUOTA_MEM=64M
	tell A times 2047 pool p
	for ((i = 0; i < 2047; i++)); do hear A; done
	say A pool q
	say A pool r
	[ "$answer" = 2 ]
	refused A async x 128M q
	refused A async x 128M
	used_is A 0
}

@test "memory of an own pool is charged, and a pool destroyed with live blocks until they are freed" {
	bare CUOTA_MEM=1G
	ok A pool p
	ok A async x 256M p
	used_is A 256
	refused A async y 1G p
	ok A endpool p
	used_is A 256
	ok A freeasync x
	ok A sync
	used_is A 0
}

@test "a pool whose size cannot be read does not lose its charge" {
	bare CUOTA_MEM=1G CUOTA_SIM_FAIL=cuMemPoolGetAttribute=999@2
	say A async x 64M
	say A freeasync x
	say A sync
	ok A async x 64M
	used A
	[ "$answer" -ge 64 ]
	refused A alloc y 1G
	ok A freeasync x
	ok A sync
	ok A trim default 0
	used_is A 0
}

@test "a host pool is not charged" {
	bare CUOTA_MEM=2M
	say A pool p host
	used_is A 0
}

# VMM-1, VMM-2
@test "virtual memory is charged until neither a handle nor a mapping is left" {
	bare CUOTA_MEM=8G
	ok A reserve r 2G
	ok A reserve s 2G
	ok A create h 2G
	ok A map h r 2G
	ok A map h s 2G
	ok A drop h
	used_is A 2048
	ok A unmap r 2G
	used_is A 2048
	ok A retain h s
	ok A unmap s 2G
	used_is A 2048
	ok A drop h
	used_is A 0
}

@test "one unmap of many mappings gives back all of them" {
	bare CUOTA_MEM=8G
	ok A reserve r 256M
	for i in {0..127}; do
		ok A create "h$i" 2M
		say A map "h$i" r 2M
	done
	used A
	[ "$answer" -eq 256 ]
}

@test "addresses are reserved beyond the cap; memory behind them is not" {
	bare CUOTA_MEM=1G
	ok A reserve r 64G
	used_is A 0
	for i in {1..512}; do ok A create "h$i" 2M; done
	refused A create h 2M
}

# CAP-1
@test "under any odd cap views succeed and are no more than the card" {
	for cap in 1B 1M 300M 24575M 24G 24577M 48G; do
		start "A$cap" CUOTA_MEM="${cap/1B/1k}"
		ok "A$cap" total 0
		[ "${answer#0 }" -le 24576 ]
		say "A$cap" ctx 0
		case $cap in
		1B | 1M | 300M) [ "$answer" = 2 ] ;;
		*)
			[ "$answer" = 0 ]
			ok "A$cap" info
			;;
		esac
		stop "A$cap"
	done
}

@test "a cap that is smaller than a context says so once" {
	start A CUOTA_MEM=300M CUOTA_LOG=warn
	refused A ctx 0
	refused A ctx 0
	[ "$(grep -c 'smaller than a context' "$BATS_TEST_TMPDIR/A.err")" = 1 ]
}

@test "the refusal line has the numbers, and a full card is told from a quota" {
	bare CUOTA_MEM=8G CUOTA_GROUP=train CUOTA_LOG=warn
	ok A alloc x 1G
	refused A alloc y 9G
	grep -q 'asked 9.0GiB, used 1.0GiB of 8.0GiB (group train, 1 process; largest pid' \
		"$BATS_TEST_TMPDIR/A.err"
	PRELOAD= start B
	ok B ctx 0
	ok B alloc x 22G
	refused A alloc y 4G
	grep -q 'card full, not your quota' "$BATS_TEST_TMPDIR/A.err"
	stop B
	used_is A 1024
}

@test "without a quota nothing changes" {
	export CUOTA_SIM_CONTEXT=0
	start A
	ok A ctx 0
	ok A alloc x 20G
	ok A info
	[[ "$answer" == *"total 24576" ]]
	[ -z "$(ls -A "$CUOTA_DIR")" ]
}

@test "a driver's own failure gives the reservation back" {
	bare CUOTA_MEM=8G CUOTA_SIM_FAIL=cuMemAlloc_v2=2@1
	say A alloc x 64M
	[ "$answer" != 0 ]
	used_is A 0
	ok A alloc x 64M
	used_is A 64
}
