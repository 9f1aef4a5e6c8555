#!/usr/bin/env bats
# `cuota run`, and the command as a whole: quotas are checked before anything runs, the command is replaced in
# place, and a GPU program that runs without its quota is told of.

load cli

setup() { cli_setup; }
teardown() { cli_teardown; }

@test "cuota without a command tells how it is used" {
	run "$CUOTA"
	[ "$status" -eq 2 ]
	[[ $output == *Usage:* ]]
}

@test "an unknown command is one line and exit 2" {
	refuses 2 "unknown command 'stauts'" "$CUOTA" stauts
}

@test "every subcommand has a help text and rejects an unknown option" {
	local command
	for command in $("$CUOTA" --help | sed -n '/^Commands:/,$s/^  \([a-z]*\) .*/\1/p'); do
		"$CUOTA" "$command" --help | grep -q "Usage: cuota $command"
		"$CUOTA" help "$command" | grep -q "Usage: cuota $command"
		run "$CUOTA" "$command" --no-such-option
		[ "$status" -eq 2 ] || { [ "$command" = run ] && [ "$status" -eq 125 ]; }
	done
}

@test "version says the same as text and as JSON" {
	local version
	version=$("$CUOTA" version --json | jq -r .version)
	"$CUOTA" version | grep -qF "cuota $version "
	[ "$("$CUOTA" --version)" = "cuota $version" ]
}

@test "hooks prints every row of the table and nothing else" {
	"$CUOTA" hooks | awk 'NF != 2 || $1 !~ /^(cu|nvml)[A-Z]/ { print; bad = 1 } END { exit bad }'
	diff <("$CUOTA" hooks | awk '$1 ~ /^cu/ { print $1 }' | sort) \
		<(nm -D --defined-only "$BUILD/libcuota.so" | awk '$3 ~ /^cu[A-Z]/ { print $3 }' | sort)
	refuses 1 "no family 'nonsense'" "$CUOTA" hooks nonsense
}

@test "a malformed quota is one line that names option, value and reason, and 125" {
	local value
	for value in 8 0 -1 '' abc 8X 8.G 1e9G 99999999999T ' ' 0G 101% 0% '8G ' '1=8' '0=8G,'; do
		refuses 125 "^cuota run: --mem '" "$CUOTA" run "--mem=$value" -- touch "$DIR/ran"
		refuses 125 "^cuota run: --mem-per-process '" "$CUOTA" run "--mem-per-process=$value" -- touch "$DIR/ran"
	done
	for value in 0 101 -5 '' abc 30%% 1e1; do
		refuses 125 "^cuota run: --sm '" "$CUOTA" run "--sm=$value" -- touch "$DIR/ran"
	done
	for value in 0 10001 -1 '' x 1.5; do
		refuses 125 "^cuota run: --weight '" "$CUOTA" run "--weight=$value" -- touch "$DIR/ran"
	done
	refuses 125 "^cuota run: --mem '0'" "$CUOTA" run --mem 0 --mem 4G -- touch "$DIR/ran"
	refuses 125 "^cuota run: --priority 'urgent'" "$CUOTA" run --priority urgent -- touch "$DIR/ran"
	refuses 125 "^cuota run: --group 'a b'" "$CUOTA" run --group 'a b' -- touch "$DIR/ran"
	[ ! -e "$DIR/ran" ]
}

@test "a malformed quota in the environment stops run as well" {
	CUOTA_MEM=8 refuses 125 "CUOTA_MEM='8': no unit" "$CUOTA" run -- touch "$DIR/ran"
	CUOTA_SM=101 refuses 125 "CUOTA_SM='101'" "$CUOTA" run --mem 8G -- touch "$DIR/ran"
	CUOTA_CONFIG=$DIR/none refuses 125 "none: no such file" "$CUOTA" run --mem 8G -- touch "$DIR/ran"
	printf '[default]\nmem = 8\n' >"$DIR/policy"
	CUOTA_CONFIG=$DIR/policy refuses 125 "policy:2: mem='8': no unit" "$CUOTA" run -- touch "$DIR/ran"
	[ ! -e "$DIR/ran" ]
	# An option stands for the variable.
	CUOTA_MEM=8 "$CUOTA" run --mem 8G -- touch "$DIR/ran"
	[ -e "$DIR/ran" ]
}

@test "exit codes are those of env: 125, 126, 127 and the command's own" {
	refuses 125 "no command given" "$CUOTA" run --mem 8G
	refuses 127 "no-such-command: No such file" "$CUOTA" run -- no-such-command
	refuses 126 "/etc/passwd: Permission denied" "$CUOTA" run -- /etc/passwd
	run sh -c '"$1" run -- no-such-command 2>&-' sh "$CUOTA"
	[ "$status" -eq 127 ]
	run "$CUOTA" run --mem 8G -- sh -c 'exit 42'
	[ "$status" -eq 42 ]
	run "$CUOTA" run -- sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ]
	CUOTA_LIBRARY=/no/such/libcuota.so refuses 125 "CUOTA_LIBRARY='/no/such/libcuota.so'" "$CUOTA" run -- true
	CUOTA_LIBRARY=/etc/passwd refuses 125 "no shared library" "$CUOTA" run -- true
}

@test "options end at the command, with and without --" {
	[ "$("$CUOTA" run --mem 8G echo --mem 9)" = "--mem 9" ]
	[ "$("$CUOTA" run --mem 8G -- echo -- --sm)" = "-- --sm" ]
}

@test "the command takes run's place: same pid, no child, no descriptor of ours" {
	sh -c 'echo $$ >"$0/pid"; exec "$1" run --mem 8G -- sh -c "
		echo \$\$ >\"$0/pid2\"; cat /proc/\$\$/task/\$\$/children >\"$0/children\""' "$DIR" "$CUOTA"
	[ "$(cat "$DIR/pid")" = "$(cat "$DIR/pid2")" ]
	# The one child is the cat that reads the list.
	[ "$(wc -w <"$DIR/children")" -eq 1 ]
	ls /proc/self/fd >"$DIR/bare"
	"$CUOTA" run --mem 8G -- ls /proc/self/fd >"$DIR/under"
	diff "$DIR/bare" "$DIR/under"
}

@test "LD_PRELOAD is merged: ours first and once, the user's kept" {
	local merged
	merged=$(LD_PRELOAD="/lib/a.so /old/libcuota.so:/lib/b.so:$BUILD/libcuota.so" \
		"$CUOTA" run --mem 8G --print-env 2>/dev/null | sed -n "s/^export LD_PRELOAD='\(.*\)'/\1/p")
	[ "$merged" = "$(realpath "$BUILD/libcuota.so"):/lib/a.so:/lib/b.so" ]
}

@test "--print-env is shell text that sets what run would set" {
	local out
	out=$("$CUOTA" run --mem 0=8G,1=4G --sm 30% --weight 200 --priority low --print-env)
	[ "$(sh -c "unset LD_PRELOAD; $out; unset LD_PRELOAD; echo \$CUOTA_MEM \$CUOTA_SM \$CUOTA_WEIGHT \$CUOTA_PRIORITY")" = \
		"0=8G,1=4G 30% 200 low" ]
	# A fresh group each time, so that two runs never share by accident.
	[ "$("$CUOTA" run --print-env | grep GROUP)" != "$("$CUOTA" run --print-env | grep GROUP)" ]
	[ "$("$CUOTA" run --group train --print-env | grep GROUP)" = "export CUOTA_GROUP='train'" ]
}

@test "--docker prints one line of options that mounts library and ledgers" {
	local out
	out=$("$CUOTA" run --mem 8G --docker)
	[ "$(wc -l <<<"$out")" -eq 1 ]
	[[ $out == *"-e CUOTA_MEM=8G "* ]]
	[[ $out == *"-v $CUOTA_DIR:/run/cuota "* ]]
	[[ $out == *"-v $(realpath "$BUILD/libcuota.so"):/usr/local/lib/libcuota.so:ro"* ]]
	[[ $out == *"-e LD_PRELOAD=/usr/local/lib/libcuota.so "* ]]
}

@test "inside another group's quota, a fresh group is told of" {
	run env CUOTA_GROUP=outer "$CUOTA" run --mem 8G -- true
	[ "$status" -eq 0 ]
	[[ $output == *"--group outer joins it"* ]]
	run env CUOTA_GROUP=outer "$CUOTA" run --group outer --mem 8G -- true
	[ -z "$output" ]
}

@test "children share the cap" {
	"$CUOTA" run --mem 3G -- sh -c '
		"$0" run 1000000 1 100000 "$1/a.ready" "$1/go" >"$1/a" & while [ ! -e "$1/a.ready" ]; do sleep 0.1; done
		"$0" run 1000000 1 100000 "$1/b.ready" "$1/go" >"$1/b" 2>&1 & while [ ! -e "$1/b.ready" ] && kill -0 $!; do sleep 0.1; done
		touch "$1/go"; wait' "$TENANT" "$DIR" 2>/dev/null || true
	local a
	a=$(sed -n 's/^taken_bytes=\([0-9]*\) refusal=2 .*/\1/p' "$DIR/a")
	[ "$a" -gt $((2 << 30)) ] && [ "$a" -lt $((3 << 30)) ]
	# The first took all there was: not even a context is left for the second.
	! grep -q '^taken_bytes=[1-9]' "$DIR/b"
}

@test "a program that lost LD_PRELOAD on the way is told of, also through a pipe" {
	touch "$DIR/go"
	run "$CUOTA" run --mem 2G -- env -u LD_PRELOAD "$TENANT" run 1000000 1 100 "$DIR/ready" "$DIR/go"
	[[ $output == *"WARNING: GPU program tenant "*" runs WITHOUT a quota"* ]]
	[ "$status" -eq 0 ]
	"$CUOTA" run --mem 2G -- env -u LD_PRELOAD "$TENANT" run 1000000 1 100 "$DIR/ready" "$DIR/go" 2>&1 | cat >"$DIR/piped"
	grep -q "runs WITHOUT a quota" "$DIR/piped"
}

@test "a program that has the library but lost its variables is told of" {
	touch "$DIR/go"
	run "$CUOTA" run --mem 2G --group lost -- env -u CUOTA_MEM -u CUOTA_GROUP "$TENANT" run 1000000 5 100 "$DIR/ready" "$DIR/go"
	[[ $output == *"WARNING: tenant "*" uses the GPU WITHOUT a quota"*"has not joined group lost"* ]]
}

@test "a program under its quota is told nothing" {
	touch "$DIR/go"
	run "$CUOTA" run --mem 2G -- "$TENANT" run 1000000 2 100 "$DIR/ready" "$DIR/go"
	[ "$status" -eq 0 ]
	[[ $output == taken_bytes=* ]]
	[ "${#lines[@]}" -eq 1 ]
}

@test "the watcher holds no pipe and ends with the command" {
	local before after
	before=$(date +%s%N)
	"$CUOTA" run --mem 2G -- true 2>&1 | cat
	after=$(date +%s%N)
	[ $((after - before)) -lt 1000000000 ]
	# The command closes its own stderr and goes on: a reader of the pipe must see the end of it.
	before=$(date +%s%N)
	mkfifo "$DIR/pipe"
	"$CUOTA" run --mem 2G -- sh -c 'exec >/dev/null 2>&1; sleep 3' >"$DIR/pipe" 2>&1 3>&- &
	HOLDERS+=($!)
	cat "$DIR/pipe"
	after=$(date +%s%N)
	[ $((after - before)) -lt 2000000000 ]
	"$CUOTA" run --mem 2G --group watched -- true
	wait_until sh -c '! ps -eo args | grep -v grep | grep -q "watch-attach .* watched "'
}

@test "a static program is told of before it runs, and refused under --strict" {
	local static=/usr/bin/busybox
	printf 'int main(void){return 0;}\n' >"$DIR/s.c"
	gcc -static -o "$DIR/static" "$DIR/s.c" 2>/dev/null && static=$DIR/static
	[ -x "$static" ] || skip "no static program and no static libc here"
	run "$CUOTA" run --mem 8G -- "$static" true
	[ "$status" -eq 0 ]
	[[ $output == *WARNING*"statically linked"* ]]
	run "$CUOTA" run --strict --mem 8G -- "$static" true
	[ "$status" -eq 125 ]
}

@test "a setuid program is told of before it runs" {
	cp "$(type -P true)" "$DIR/suid"
	chmod u+s,a+rx "$DIR/suid"
	run as_nobody "$CUOTA" run --mem 8G --no-check -- "$DIR/suid"
	[[ $output == *"setuid or setgid"* ]]
}

@test "a script is judged by its interpreter" {
	printf '#!/bin/sh\nexit 9\n' >"$DIR/script"
	chmod +x "$DIR/script"
	run "$CUOTA" run --mem 8G -- "$DIR/script"
	[ "$status" -eq 9 ]
	[ -z "$output" ]
}

@test "output that cannot be written is an error" {
	[ -e /dev/full ] || skip "no /dev/full"
	local command
	for command in status 'status --json' version hooks metrics usage 'usage --format json' 'doctor --no-self-test' 'run --print-env'; do
		run sh -c "\"$CUOTA\" $command >/dev/full"
		[ "$status" -ne 0 ] || { echo "exit 0: $command"; false; }
		[[ $output == *"cannot write the output"* ]] || { echo "$command: $output"; false; }
	done
}
