#!/usr/bin/env bats
# `cuota status`, `set` and `top`: what people see of running groups, and change.

load cli

setup() { cli_setup; }
teardown() { cli_teardown; }

json() { "$CUOTA" status --interval 0 --json; }

@test "status on a host with nothing says so and exits 0" {
	unset LD_LIBRARY_PATH
	run "$CUOTA" status
	[ "$status" -eq 0 ]
	[[ $output == *"No GPU and no ledger in $CUOTA_DIR"* ]]
	[ "$("$CUOTA" status --json | jq -c '[.schema, .version, .gpus]')" = '["cuota.status",1,[]]' ]
}

@test "status shows cap, use and members of a group" {
	hold train 1000 --mem 2G --sm 30%
	run "$CUOTA" status
	[ "$status" -eq 0 ]
	[[ $output == *train*2.0GiB* ]]
	json | jq -e '.gpus[].groups[] | select(.name == "train") | .memory.cap_bytes == 2147483648
		and .sm.cap_ratio == 0.3 and .weight == 100 and .priority == "normal"
		and .memory.used_bytes > 900 * 1048576 and .memory.used_bytes <= 2147483648
		and .memory.peak_bytes >= .memory.used_bytes and .memory.overhead_bytes > 0
		and ((.memory.by_kind_bytes | add) - .memory.used_bytes | fabs) < 512
		and (.members | length) == 1 and .members[0].command == "tenant"'
	[ "$(json | jq '.gpus[].groups[].members[0].pid')" = "$HELD" ]
	"$CUOTA" status -p | grep -q "pid $HELD .*tenant"
}

@test "status says the share that a busy group has" {
	touch "$DIR/busy.go"
	hold busy 100 --sm 50%
	sleep 1
	"$CUOTA" status --interval 1 --json | jq -e '.gpus[].groups[0].sm.share_ratio | . > 0.3 and . < 0.7'
	"$CUOTA" status --interval 1 --json | jq -e '.gpus[].groups[0].sm.share_minute_ratio | . == null or (. > 0.05 and . < 0.8)'
}

@test "every field that the schema names is there, and no other" {
	hold train 100 --mem 2G
	json | jq -r 'paths(type != "object" and type != "array") |
		map(if type == "number" then "[]" else "." + . end) | add | .[1:]' | sort -u >"$DIR/fields"
	sed -n 's/^| `\([^`]*\)` .*/\1/p' docs/status-schema.md | sort -u >"$DIR/schema"
	[ -s "$DIR/schema" ]
	# Lists that are empty here need not show their fields.
	comm -23 "$DIR/fields" "$DIR/schema" | tee "$DIR/unnamed"
	[ ! -s "$DIR/unnamed" ]
	comm -13 "$DIR/fields" "$DIR/schema" | grep -v 'unattached\[\]' | tee "$DIR/missing"
	[ ! -s "$DIR/missing" ]
}

@test "a group or GPU that does not exist is an error" {
	hold train 100 --mem 2G
	refuses 1 "no group 'trian'" "$CUOTA" status trian
	refuses 1 "no GPU '7'" "$CUOTA" status --gpu 7
	"$CUOTA" status --gpu "$(json | jq -r '.gpus[0].uuid[:8] | ascii_upcase')" >/dev/null
	"$CUOTA" status --gpu GPU- train | grep -q train
}

@test "a damaged ledger is told and the others are shown" {
	hold train 100 --mem 2G
	head -c 5000 /dev/urandom >"$CUOTA_DIR/GPU-00000000-bad.ledger"
	run "$CUOTA" status
	[ "$status" -eq 1 ]
	[[ $output == *train* ]]
	[[ $output == *GPU-00000000-bad* ]]
	"$CUOTA" status --json 2>/dev/null | jq -e '[.gpus[] | .ledger.problem] | any(. != null) and any(. == null)'
}

@test "status needs no right to write, and tells when it may not read" {
	hold train 100 --mem 2G
	chmod 755 "$CUOTA_DIR"
	as_nobody "$CUOTA" status | grep -q train
	chmod 700 "$CUOTA_DIR"
	run as_nobody "$CUOTA" status
	[ "$status" -eq 1 ]
	[[ $output == *"Permission denied"* ]]
}

@test "no colour into a pipe, with NO_COLOR, or on a dumb terminal" {
	hold train 100 --mem 2G
	! "$CUOTA" status | grep -q $'\033'
	! NO_COLOR=1 TERM=xterm script -qec "$CUOTA status" /dev/null </dev/null | grep -q $'\033'
	! TERM=dumb script -qec "$CUOTA status" /dev/null </dev/null | grep -q $'\033'
	TERM=xterm script -qec "$CUOTA status" /dev/null </dev/null | grep -q $'\033'
}

@test "the table fits 80 columns of a terminal, and names are whole in a pipe" {
	local name=a-very-long-name-of-a-group-that-does-not-fit-into-the-table
	hold "$name" 100 --mem 2G
	script -qec "stty cols 80; NO_COLOR=1 $CUOTA status" /dev/null </dev/null |
		tr -d '\r' | awk 'length > 80 { print length ": " $0; bad = 1 } END { exit bad }'
	"$CUOTA" status | grep -q "$name"
}

@test "a reader that goes away is no trouble" {
	hold train 100 --mem 2G
	run bash -c "'$CUOTA' status --json | true"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "a process without a quota is shown as such" {
	LD_PRELOAD='' "$TENANT" run 1000000 1 300 "$DIR/bare.ready" "$DIR/bare.go" >"$DIR/bare.out" 2>&1 3>&- &
	HOLDERS+=($!)
	wait_for "$DIR/bare.ready"
	"$CUOTA" status | grep -A2 'not under a quota' | grep -q tenant
	json | jq -e --argjson pid $! '.gpus[].unattached | length == 1 and .[0].pid == $pid and .[0].used_bytes > 300 * 1048576'
}

@test "inside a quota status shows the whole card all the same, and who is not under one" {
	local whole other
	hold train 100 --mem 4G
	"$TENANT" run 1000000 1 100 "$DIR/bare.ready" "$DIR/bare.go" >"$DIR/bare.out" 2>&1 3>&- &
	other=$!
	HOLDERS+=("$other")
	wait_for "$DIR/bare.ready"
	whole=$(json | jq -c '.gpus[] | [.memory, .unattached, .invisible_processes]')
	[ "$("$CUOTA" run --group train --mem 4G -- "$CUOTA" status --json | jq -c '.gpus[] | [.memory, .unattached, .invisible_processes]')" = "$whole" ]
	jq -e ".[1][0].pid == $other" <<<"$whole"
}

@test "who was killed is gone from the table at once" {
	hold train 100 --mem 2G
	kill -9 "$HELD"
	wait_until sh -c "! '$CUOTA' status --interval 0 train 2>/dev/null"
}

# ---- set ---------------------------------------------------------------------------------------------

# limit GROUP KEY: what was set
limit() { sed -n "s/^$2 = //p" "$CUOTA_DIR/limits/$1.limits"; }

@test "set changes a running group's caps at once" {
	hold train 500 --mem 2G
	"$CUOTA" set train --mem 4G --sm 25% --weight 300 --priority low
	json | jq -e '.gpus[].groups[0] | .memory.cap_bytes == 4294967296 and .sm.cap_ratio == 0.25
		and .weight == 300 and .priority == "low"'
	"$CUOTA" set train --reset
	json | jq -e '.gpus[].groups[0] | .memory.cap_bytes == 2147483648 and .sm.cap_ratio == null'
}

@test "a cap below what is used refuses the next and takes nothing" {
	hold train 1000 --mem 4G
	run "$CUOTA" set train --mem 1G
	[ "$status" -eq 0 ]
	[[ $output == *"it gets no more until it is below 1.0GiB"* ]]
	"$CUOTA" run --group train -- "$TENANT" run 1000000 1 100 "$DIR/second.ready" "$DIR/train.go" >"$DIR/second.out" 2>&1 3>&- || true
	grep -q OUT_OF_MEMORY "$DIR/second.out"
	json | jq -e '.gpus[].groups[0].memory.used_bytes > 1073741824'
}

@test "set wants a group that runs and a value that is one" {
	hold train 100 --mem 2G
	refuses 1 "no group 'nope' is running" "$CUOTA" set nope --mem 1G
	refuses 2 "nothing to set" "$CUOTA" set train
	refuses 2 "no group given" "$CUOTA" set --mem 1G
	refuses 2 "^cuota set: --mem '8': no unit" "$CUOTA" set train --mem 8
	refuses 2 "^cuota set: --sm '0'" "$CUOTA" set train --sm 0
	refuses 2 "^cuota set: --weight '0'" "$CUOTA" set train --weight 0
	refuses 2 "^cuota set: --priority 'x'" "$CUOTA" set train --priority x
	refuses 2 "no list" "$CUOTA" set train --mem 0=1G,2G
	refuses 2 "goes alone" "$CUOTA" set train --reset --mem 1G
	refuses 1 "nothing was set" "$CUOTA" set train --reset
}

@test "set takes what run takes, and a percent is of the same device" {
	hold train 100 --mem 50% --sm none
	hold probe 100 --mem 12.34%
	local half part
	half=$(json | jq '.gpus[].groups[] | select(.name == "train").memory.cap_bytes')
	part=$(json | jq '.gpus[].groups[] | select(.name == "probe").memory.cap_bytes')
	"$CUOTA" set train --mem 12.34% --sm NONE --priority HIGH
	[ "$(limit train mem)" = "$part" ]
	"$CUOTA" set train --mem 50%
	[ "$(limit train mem)" = "$half" ]
	"$CUOTA" set train --mem None
	[ "$(limit train mem)" = none ]
	[ "$(limit train priority)" = 3 ]
}

@test "a percent is of the device, also from inside a quota" {
	hold train 100 --mem 4G
	"$CUOTA" set train --mem 50%
	local half
	half=$(limit train mem)
	"$CUOTA" run --group train --mem 4G -- "$CUOTA" set train --mem 50%
	[ "$(limit train mem)" = "$half" ]
	[ "$half" -gt 4294967296 ]
}

@test "only the owner and root may set" {
	hold train 100 --mem 2G
	run as_nobody "$CUOTA" set train --mem 1G
	[ "$status" -eq 1 ]
	[[ $output == *"only they and root may change it"* ]]
	json | jq -e '.gpus[].groups[0].memory.cap_bytes == 2147483648'
}

# ---- top ---------------------------------------------------------------------------------------------

@test "top wants a terminal that it can draw on" {
	refuses 1 "needs a terminal" "$CUOTA" top
	run script -qec "TERM=nonsense $CUOTA top" /dev/null </dev/null
	[ "$status" -eq 1 ]
	[[ $output == *"TERM='nonsense'"* ]]
	refuses 2 "write 0.1 to 60" "$CUOTA" top --delay 0
	refuses 2 "write name, memory or share" "$CUOTA" top --sort colour
}

tmux_run() { tmux -L "cuota-$BATS_TEST_NUMBER-$$" "$@"; }

# in_top COLUMNS ROWS PATTERN [KEY...]: the screen after the keys shows the pattern; then q ends it with 0
in_top()
{
	local columns=$1 rows=$2 pattern=$3 screen='' i
	shift 3
	tmux_run -f /dev/null new-session -d -x "$columns" -y "$rows" \
		"LC_ALL=C.UTF-8 TERM=xterm-256color CUOTA_DIR='$CUOTA_DIR' LD_LIBRARY_PATH='$LD_LIBRARY_PATH' CUOTA_SIM_STATE='$CUOTA_SIM_STATE' \
		'$CUOTA' top -d 0.2; echo \$? >'$DIR/top.rc'" 3>&-
	sleep 0.5
	for i in "$@"; do
		tmux_run send-keys "$i"
	done
	for i in $(seq 30); do
		sleep 0.2
		screen=$(tmux_run capture-pane -p)
		if grep -Eq -- "$pattern" <<<"$screen"; then
			tmux_run send-keys q
			wait_for "$DIR/top.rc"
			[ "$(cat "$DIR/top.rc")" -eq 0 ]
			return
		fi
	done
	echo "not on the screen: $pattern"
	echo "$screen"
	tmux_run kill-server
	return 1
}

@test "top shows the groups and their history, and ends at q" {
	hold train 1000 --mem 2G --sm 30%
	in_top 80 24 '^>train .*/2\.0GiB\].*1 +[0-9.]+s +0'
	in_top 120 40 'SM time: train .*memory, of its cap'
}

@test "top works on a small terminal" {
	hold train 1000 --mem 2G
	in_top 40 10 '^>train'
}

@test "top shows processes and help by key" {
	hold train 1000 --mem 2G
	in_top 80 24 "$HELD +tenant" p
	in_top 80 24 'show the processes of each group' F1
	in_top 80 24 'by memory, every' s
}
