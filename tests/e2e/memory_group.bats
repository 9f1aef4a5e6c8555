#!/usr/bin/env bats
# Memory between processes: one cap for a group, memory that is shared, views of co-tenants.

load memory_help

setup()
{
	memory_setup
	export CUOTA_SIM_CONTEXT=0 CUOTA_GROUP=train
}

teardown()
{
	memory_teardown
}

two()
{
	start A "$@"
	start B "$@"
	ok A ctx 0
	ok B ctx 0
}

# MEM-2
@test "of two processes that ask at once only as many succeed as fit" {
	export CUOTA_SIM_FAIL="cuMemAlloc_v2:delay=5ms"
	two CUOTA_MEM=8G
	for round in {1..10}; do
		granted=0
		for i in 1 2 3 4 5 6; do
			tell A alloc "a$i" 1536M
			tell B alloc "b$i" 1536M
		done
		for i in 1 2 3 4 5 6; do
			for p in A B; do
				hear $p
				[ "$answer" = 0 ] && granted=$((granted + 1)) || [ "$answer" = 2 ]
			done
		done
		[ "$granted" = 5 ] || { echo "round $round: $granted"; false; }
		for i in 1 2 3 4 5 6; do
			say A free "a$i"
			say B free "b$i"
		done
		used_is A 0
	done
}

# TEN-1
@test "the cap is the group's, not each process's" {
	two CUOTA_MEM=1G
	ok A alloc x 700M
	refused B alloc x 700M
	ok B alloc x 300M
	used_is A 1000
}

@test "a cap of each process holds beside the group's" {
	two CUOTA_MEM=4G CUOTA_MEM_PER_PROCESS=1G
	refused A alloc x 1100M
	ok A alloc x 1000M
	ok B alloc x 1000M
	ok A info
	[[ "$answer" == *"free 24 total 1024" ]]
}

@test "two groups with different caps do not touch one another" {
	start A CUOTA_MEM=1G CUOTA_GROUP=one
	start B CUOTA_MEM=4G CUOTA_GROUP=two
	ok A ctx 0
	ok B ctx 0
	ok B alloc x 4G
	ok A alloc x 1G
	refused A alloc y 2M
	ok B info
	[[ "$answer" == *"free 0 total 4096" ]]
}

# VLM-1
@test "what another tenant takes and gives back is not to be seen" {
	start A CUOTA_MEM=8G CUOTA_GROUP=one
	start B CUOTA_GROUP=two CUOTA_MEM=16G
	ok A ctx 0
	ok B ctx 0
	ok A alloc x 1G
	ok A info
	before=$answer
	ok B alloc x 5G
	ok A info
	[ "$answer" = "$before" ]
	ok B free x
	ok A info
	[ "$answer" = "$before" ]
}

@test "free is the card's when that is less" {
	start A CUOTA_MEM=8G CUOTA_GROUP=one
	PRELOAD= start B
	ok A ctx 0
	ok B ctx 0
	ok B alloc x 20G
	ok A info
	[[ "$answer" == *"free 4096 total 8192" ]]
}

# ORP-1, on the refusal path
@test "a killed process's memory is there for the next one at once" {
	two CUOTA_MEM=8G
	ok A alloc x 6G
	kill_hard A
	ok B alloc x 6G
}

# The same where nobody is refused: a view alone.
@test "a killed process's memory is free in the next view of its group" {
	two CUOTA_MEM=8G
	ok A alloc x 6G
	used B
	[ "$answer" -ge 6144 ]
	kill_hard A
	used_is B 0
}

# VMM-1: sleep mode
@test "what one lets go of another can take, and waking up is a refusal, not a crash" {
	two CUOTA_MEM=4G
	ok A reserve r 3G
	ok A create h 3G
	ok A map h r 3G
	refused B create h 3G
	ok A unmap r 3G
	ok A drop h
	ok B create h 3G
	refused A create h 3G
	ok B drop h
	ok A create h 3G
}

# IPC: a descriptor
@test "imported memory is charged once, and to the importer when the exporter is gone" {
	two CUOTA_MEM=8G
	ok A create h 1G
	tell B receive h "$BATS_TEST_TMPDIR/s"
	ok A send h "$BATS_TEST_TMPDIR/s"
	hear B
	[ "$answer" = 0 ]
	used_is B 1024
	ok B reserve r 1G
	ok B map h r 1G
	used_is B 1024
	stop A
	used_within B 1024 3
	ok B drop h
	used_is B 1024
	ok B unmap r 1G
	used_is B 0
}

@test "an exporter that lets go while another holds the memory stays charged until nobody does" {
	two CUOTA_MEM=8G
	ok A create h 1G
	tell B receive h "$BATS_TEST_TMPDIR/s"
	ok A send h "$BATS_TEST_TMPDIR/s"
	hear B
	ok A drop h
	used_is A 1024
	ok B drop h
	used_within A 0 3
}

@test "a killed exporter's memory is charged to who holds it" {
	two CUOTA_MEM=8G
	ok A create h 1G
	tell B receive h "$BATS_TEST_TMPDIR/s"
	ok A send h "$BATS_TEST_TMPDIR/s"
	hear B
	kill_hard A
	used_within B 1024 3
	ok B drop h
	used_is B 0
}

@test "three who hold one exporter's memory are charged it once when it is gone" {
	two CUOTA_MEM=8G
	start C CUOTA_MEM=8G
	ok C ctx 0
	ok A create h 1G
	for p in B C; do
		tell $p receive h "$BATS_TEST_TMPDIR/s$p"
		ok A send h "$BATS_TEST_TMPDIR/s$p"
		hear $p
		[ "$answer" = 0 ]
	done
	used_is C 1024
	stop A
	sleep 2.5
	used_is B 1024
	ok B drop h
	used_within C 1024 3
	ok C drop h
	used_within C 0 3
}

# IPC: a legacy handle
@test "memory opened through an IPC handle is charged once, and stays with its opener" {
	two CUOTA_MEM=8G
	ok A alloc x 1G
	ok A ipcget x
	handle=${answer#0 }
	ok B ipcopen y "$handle"
	used_is B 1024
	ok B ipcopen z "$handle"
	used_is B 1024
	stop A
	used_within B 1024 3
	ok B ipcclose y
	used_is B 1024
	ok B ipcclose z
	used_within B 0 3
}

# FRK-1
@test "a forked child charges nothing and gives nothing back, whatever it tries" {
	start A CUOTA_MEM=8G
	ok A ctx 0
	ok A alloc x 1G
	say A forked free x
	[ "$answer" != 2 ]
	say A forked alloc y 1G
	say A forked ctx 0
	say A forked info
	used_is A 1024
	refused A alloc z 8G
	ok A free x
	used_is A 0
}

@test "an exporter that frees what another has open through an IPC handle stays charged for it" {
	two CUOTA_MEM=8G
	ok A alloc x 1G
	ok A ipcget x
	ok B ipcopen y "${answer#0 }"
	say A free x
	used_is A 1024
	ok B ipcclose y
	used_within A 0 3
}

@test "pools that gave memory back are seen by the rest of the group after a synchronise" {
	two CUOTA_MEM=1G
	ok A async x 768M
	refused B alloc y 512M
	ok A freeasync x
	ok A sync
	ok B alloc y 512M
}

@test "eight processes that take and give for a while leave nothing behind" {
	for i in 1 2 3 4 5 6 7 8; do
		start "P$i" CUOTA_MEM=1G
		ok "P$i" ctx 0
	done
	for i in 1 2 3 4 5 6 7 8; do
		for j in {1..200}; do
			tell "P$i" alloc x 1M
			tell "P$i" free x
		done
	done
	for i in 1 2 3 4 5 6 7 8; do
		for j in {1..400}; do hear "P$i"; done
	done
	used_is P1 0
}
