#!/usr/bin/env bats
# `cuota usage`, `reap`, `metrics`, `exporter`, `doctor` and `config`: what is kept, told and checked.

load cli

setup() { cli_setup; }
teardown() { cli_teardown; [ -z "${SERVER:-}" ] || kill "$SERVER" 2>/dev/null || true; }

usage_json() { "$CUOTA" usage --since 1h --format json "$@"; }

# ---- usage -------------------------------------------------------------------------------------------

@test "a process that ends leaves its account" {
	touch "$DIR/train.go"
	hold train 500 --mem 2G
	wait "$HELD"
	usage_json --by group | jq -e '.rows | length == 1 and (.[0] | .group == "train" and .processes == 1
		and .running == 0 and .alive_seconds > 3 and .sm_seconds > 1 and .peak_bytes > 500 * 1048576
		and .byte_seconds > 500 * 1048576)'
}

@test "a process that is killed leaves its account, too" {
	hold train 500 --mem 2G
	sleep 1
	kill -9 "$HELD"
	wait "$HELD" || true
	wait_until sh -c "'$CUOTA' usage --since 1h --by group --format json | jq -e '.rows[0].running == 0'"
	usage_json --by command | jq -e '.rows | length == 1 and (.[0] | .command == "tenant" and .processes == 1
		and .peak_bytes > 500 * 1048576)'
	# Once, however often one looks.
	usage_json --by user | jq -e '.total.processes == 1'
}

@test "what still runs counts up to now" {
	hold train 500 --mem 2G
	usage_json | jq -e '.total.running == 1'
}

@test "a refusal is in the account" {
	touch "$DIR/train.go"
	hold train 100000 --mem 1G
	wait "$HELD"
	usage_json | jq -e '.total.denials > 0'
}

@test "usage adds up by user, group, job, gpu and command, in every format" {
	local by
	touch "$DIR/slurm-17.go" "$DIR/b.go"
	hold slurm-17 100 --mem 2G
	wait "$HELD"
	hold b 100 --mem 2G
	wait "$HELD"
	for by in user group job gpu command; do
		usage_json --by "$by" | jq -e --arg by "$by" '.by == $by and .total.processes == 2'
		"$CUOTA" usage --since 1h --by "$by" --format csv | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert sum(int(r["processes"]) for r in rows) == 2, rows'
		"$CUOTA" usage --since 1h --by "$by" | grep -q PROCS
	done
	usage_json --by job | jq -e '[.rows[].job] | sort == ["-", "slurm-17"]'
}

@test "a price gives a cost, and a device without a price gives none" {
	touch "$DIR/train.go"
	hold train 100 --mem 2G
	wait "$HELD"
	usage_json --price H200=3600 | jq -e '.total | .cost > 0 and (.cost - .gpu_seconds | fabs) < 0.01'
	usage_json --price A100=1 | jq -e '.total.cost == null'
	usage_json --price 'A100=1,*=3600' | jq -e '.total.cost > 0'
}

@test "the HTML report stands alone and is well formed" {
	touch "$DIR/train.go"
	hold train 100 --mem 2G
	wait "$HELD"
	"$CUOTA" usage --since 1h --by group --format html >"$DIR/r.html"
	! grep -Eiq '(src|href)=|url\(|<script|@import' "$DIR/r.html"
	python3 - "$DIR/r.html" <<-'END'
		import sys
		from html.parser import HTMLParser
		class Check(HTMLParser):
		    def __init__(self):
		        super().__init__(); self.open = []; self.text = ''
		    def handle_starttag(self, tag, attributes):
		        if tag not in ('meta', 'line'): self.open.append(tag)
		    def handle_endtag(self, tag):
		        assert self.open.pop() == tag, tag
		    def handle_startendtag(self, tag, attributes): pass
		    def handle_data(self, data): self.text += data
		c = Check(); c.feed(open(sys.argv[1]).read()); c.close()
		assert not c.open, c.open
		assert 'train' in c.text
	END
}

@test "damaged and foreign records are left out and told of" {
	touch "$DIR/train.go"
	hold train 100 --mem 2G
	wait "$HELD"
	printf '{"v":1,"type":"end","t_ms":17\nnonsense\n' >>"$CUOTA_DIR/journal/u$(id -u)-ends.jsonl"
	printf '{"v":1,"type":"end","t_ms":%s000,"uid":4242,"gpu":"x","group":"forged","reaped":0}\n' "$(date +%s)" \
		>"$CUOTA_DIR/journal/u4242-ends.jsonl"
	run usage_json
	[[ $output == *"2 damaged records left out"* ]]
	if [ "$(id -u)" -eq 0 ]; then
		chown 65534 "$CUOTA_DIR/journal/u4242-ends.jsonl"
	fi
	run usage_json
	[[ $output == *"1 journal files left out"* ]]
	usage_json 2>/dev/null | jq -e '.total.processes == 1'
}

@test "usage wants times, prices and words that are such" {
	refuses 2 "--since 'yesterday'" "$CUOTA" usage --since yesterday
	refuses 2 "--until 'x'" "$CUOTA" usage --until x
	refuses 2 "--by 'colour'" "$CUOTA" usage --by colour
	refuses 2 "--format 'pdf'" "$CUOTA" usage --format pdf
	refuses 2 "--price 'H200'" "$CUOTA" usage --price H200
	refuses 2 "--price 'H200=-1'" "$CUOTA" usage --price H200=-1
	refuses 2 "--price 'A=1,H200='" "$CUOTA" usage --price A=1,H200=
	refuses 2 "--price ''" "$CUOTA" usage --price ''
	refuses 2 "--since '2026-02-30'" "$CUOTA" usage --since 2026-02-30
	refuses 2 "--since '1e3d'" "$CUOTA" usage --since 1e3d
	refuses 2 "--since ' 7d'" "$CUOTA" usage --since ' 7d'
	refuses 2 "--since is after --until" "$CUOTA" usage --since 1d --until 2d
	run "$CUOTA" usage --since 2020-01-01 --until 2020-01-02
	[ "$status" -eq 0 ]
	[[ $output == *"No process"* ]]
}

# ---- reap --------------------------------------------------------------------------------------------

@test "reap only tells, unless told to act; exemptions hold" {
	hold lazy 300 --mem 2G
	sleep 3
	run "$CUOTA" reap --idle 2s
	[ "$status" -eq 0 ]
	[[ $output == *"group lazy"*"would send TERM to [$HELD]"* ]]
	kill -0 "$HELD"
	run "$CUOTA" reap --idle 2s --yes --exempt 'la*'
	[ -z "$output" ]
	kill -0 "$HELD"
	run "$CUOTA" reap --idle 2s --yes --grace 5s
	[ "$status" -eq 0 ]
	! kill -0 "$HELD" 2>/dev/null || wait "$HELD" || true
	[[ $output == *"will send TERM to [$HELD]"* ]]
}

@test "reap leaves alone who works, and whose past it does not know" {
	touch "$DIR/busy.go"
	hold busy 100 --sm 50%
	sleep 2.5
	run "$CUOTA" reap --idle 2s
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	hold young 100
	run "$CUOTA" reap --idle 30m
	[ -z "$output" ]
}

@test "reap runs a command with what it must know, and tells of one that stays" {
	hold lazy 300 --mem 2G
	sleep 3
	"$CUOTA" reap --idle 2s --yes --exec 'echo "$CUOTA_REAP_GROUP $CUOTA_REAP_PIDS" >'"$DIR/told"
	[ "$(cat "$DIR/told")" = "lazy $HELD" ]
	run "$CUOTA" reap --idle 2s --yes --exec false
	[ "$status" -eq 1 ]
	kill -STOP "$HELD"
	run "$CUOTA" reap --idle 2s --yes --grace 1s --signal TERM
	[ "$status" -eq 1 ]
	[[ $output == *"1 process still there"* ]]
	run "$CUOTA" reap --idle 2s --yes --grace 1s --kill
	[ "$status" -eq 0 ]
}

@test "reap wants values that are such" {
	refuses 2 "--idle 'x'" "$CUOTA" reap --idle x
	refuses 2 "--below '101%'" "$CUOTA" reap --below 101%
	refuses 2 "no such signal" "$CUOTA" reap --signal NOPE
}

# ---- metrics and exporter ----------------------------------------------------------------------------

@test "promtool has nothing to say about the metrics" {
	command -v promtool >/dev/null || skip "no promtool here"
	hold train 300 --mem 2G --sm 30%
	run bash -c "'$CUOTA' metrics | promtool check metrics"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "the metrics say what status says" {
	hold train 300 --mem 2G --sm 30%
	"$CUOTA" metrics >"$DIR/m"
	grep -Eq '^cuota_memory_limit_bytes\{.*group="train".*\} 2147483648$' "$DIR/m"
	grep -Eq '^cuota_sm_limit_ratio\{.*group="train".*\} 0\.3$' "$DIR/m"
	grep -Eq '^cuota_processes\{.*group="train".*\} 1$' "$DIR/m"
	[ "$(sed -n 's/^cuota_memory_used_bytes{.*} //p' "$DIR/m")" = \
		"$("$CUOTA" status --interval 0 --json | jq '.gpus[0].groups[0].memory.used_bytes')" ]
	"$CUOTA" metrics --openmetrics | tail -1 | grep -qx '# EOF'
	# Without a cap there is no limit to tell.
	hold free 100
	! "$CUOTA" metrics | grep '^cuota_memory_limit_bytes' | grep -q 'group="free"'
}

@test "OpenMetrics is such" {
	command -v promtool >/dev/null || skip "no promtool here"
	hold train 300 --mem 2G
	"$CUOTA" metrics --openmetrics | sed "/^[^#]/s/\$/ $(date +%s)/" >"$DIR/m"
	promtool tsdb create-blocks-from openmetrics "$DIR/m" "$DIR/blocks"
}

serve()
{
	PORT=$((20000 + RANDOM % 20000))
	"$CUOTA" exporter --listen "127.0.0.1:$PORT" 2>"$DIR/exporter.err" 3>&- &
	SERVER=$!
	wait_until curl -sf "http://127.0.0.1:$PORT/-/healthy"
}

@test "the exporter answers, in the format that is asked for" {
	hold train 300 --mem 2G
	serve
	curl -sf "http://127.0.0.1:$PORT/metrics" | grep -q 'group="train"'
	curl -sfi "http://127.0.0.1:$PORT/metrics" | grep -qi '^content-type: text/plain; version=0.0.4'
	curl -sfi -H 'Accept: application/openmetrics-text' "http://127.0.0.1:$PORT/metrics" >"$DIR/om"
	grep -qi '^content-type: application/openmetrics-text' "$DIR/om"
	tail -1 "$DIR/om" | grep -qx '# EOF'
	[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/nope")" = 404 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -d x "http://127.0.0.1:$PORT/metrics")" = 405 ]
	refuses 1 "cannot listen" "$CUOTA" exporter --listen "127.0.0.1:$PORT"
	kill "$SERVER"
	wait "$SERVER"
}

@test "the exporter wants an address" {
	refuses 2 "write ADDRESS:PORT" "$CUOTA" exporter --listen nowhere
	refuses 2 "a port is 65535 at most" timeout 5 "$CUOTA" exporter --listen 127.0.0.1:65536
	refuses 2 "--listen 'no.such.host.invalid:1'" "$CUOTA" exporter --listen no.such.host.invalid:1
}

@test "a dead ledger is a metric and not the end of the exporter" {
	serve
	head -c 100 /dev/zero >"$CUOTA_DIR/GPU-00000000-bad.ledger"
	curl -sf "http://127.0.0.1:$PORT/metrics" | grep -q '^cuota_ledger_readable{gpu="",uuid="GPU-00000000-bad"} 0'
	curl -sf "http://127.0.0.1:$PORT/metrics" | grep -Eq '^cuota_ledger_errors_total [1-9]'
}

# ---- doctor ------------------------------------------------------------------------------------------

@test "doctor's live test sees that the caps hold" {
	"$CUOTA" doctor --json | jq -e '.findings[] | select(.check == "self-test") | .level == "good"'
}

@test "doctor sees a library that is not there, a malformed quota, a damaged ledger, and exits 1" {
	run env CUOTA_LIBRARY=/no/such.so "$CUOTA" doctor --no-self-test
	[ "$status" -eq 1 ]
	[[ $output == *"bad      library"* ]]
	run env CUOTA_MEM=8 "$CUOTA" doctor --no-self-test
	[[ $output == *"bad      environment"*"$ unset CUOTA_MEM"* ]]
	head -c 100 /dev/zero >"$CUOTA_DIR/GPU-00000000-bad.ledger"
	run "$CUOTA" doctor --no-self-test
	[ "$status" -eq 1 ]
	[[ $output == *"bad      ledger"*"$ rm $CUOTA_DIR/GPU-00000000-bad.ledger"* ]]
}

@test "doctor sees a directory that is missing, closed or not sticky" {
	run env CUOTA_DIR="$DIR/none" "$CUOTA" doctor --no-self-test
	[[ $output == *"bad      directory"*"$ sudo install -d -m 1777 $DIR/none"* ]]
	chmod 777 "$CUOTA_DIR"
	run "$CUOTA" doctor --no-self-test
	[[ $output == *"warning  directory"*"not sticky"* ]]
	run "$CUOTA" doctor --no-self-test --strict
	[ "$status" -eq 1 ]
}

@test "doctor sees a preload entry that leads nowhere" {
	run env LD_PRELOAD=/gone/libcuota.so "$CUOTA" doctor --no-self-test
	[[ $output == *"LD_PRELOAD names /gone/libcuota.so: No such file"* ]]
}

# ---- config ------------------------------------------------------------------------------------------

@test "config check judges every line" {
	cat >"$DIR/policy.conf" <<-'END'
		# comment
		[default]
		mem = 20G
		weight = 0
		[nonsense]
		sm = 1
	END
	run "$CUOTA" config check "$DIR/policy.conf"
	[ "$status" -eq 1 ]
	[[ $output == *"policy.conf:3: ok     mem = 20G"* ]]
	[[ $output == *"policy.conf:4: WRONG  weight = 0"* ]]
	[[ $output == *"policy.conf:5: WRONG  [nonsense]"* ]]
	printf '[default]\nmem = 20G\n' >"$DIR/policy.conf"
	run "$CUOTA" config check "$DIR/policy.conf"
	[ "$status" -eq 0 ]
	[[ $output == *": good" ]]
	chmod 666 "$DIR/policy.conf"
	run "$CUOTA" config check "$DIR/policy.conf"
	[ "$status" -eq 1 ]
	refuses 1 "No such file" "$CUOTA" config check "$DIR/none.conf"
	mkfifo "$DIR/fifo"
	run timeout 5 "$CUOTA" config check "$DIR/fifo"
	[ "$status" -eq 1 ]
	[ "$output" = "$DIR/fifo: not a regular file" ]
	refuses 2 "check" "$CUOTA" config
}

# In a mount namespace where /etc can be written; "$CUOTA" comes first, then the shell text.
with_etc()
{
	mkdir -p "$DIR/etc"
	run unshare -m -- bash -c 'mount -t tmpfs tmpfs "$0" && mkdir "$0/up" "$0/work" &&
		mount -t overlay -o "lowerdir=/etc,upperdir=$0/up,workdir=$0/work" overlay /etc && rm -rf /etc/cuota || exit 99
		CUOTA=$1; eval "$2"' "$DIR/etc" "$CUOTA" "$1"
	[ "$status" -ne 99 ] || skip "mounting is not allowed here"
}

@test "the files of conf.d are a policy without the file beside them" {
	with_etc 'mkdir -p /etc/cuota/conf.d; echo "[default]" >/etc/cuota/conf.d/a.conf; echo "mem = 2" >>/etc/cuota/conf.d/a.conf; "$CUOTA" config check'
	[ "$status" -eq 1 ]
	[[ $output == *"/etc/cuota/conf.d/a.conf:2: mem='2': no unit"* ]]
	with_etc 'mkdir -p /etc/cuota/conf.d; echo "[default]" >/etc/cuota/conf.d/a.conf; "$CUOTA" config check; "$CUOTA" doctor --no-self-test'
	[[ $output == *": good"* && $output == *"the policy can be read"* && $output != *"not there"* ]]
	with_etc '"$CUOTA" config check; "$CUOTA" doctor --no-self-test'
	[[ $output == *"no policy is set"* && $output == *"nothing bounds what users ask for"* ]]
}

@test "a CDI device has each setting once, and its name to itself" {
	"$CUOTA" cdi generate --library "$BUILD/libcuota.so" --quota a:mem=8G,sm=30 --quota b:mem=8G |
		jq -e '[.devices[].name] == ["a", "b"]'
	refuses 1 "CUOTA_MEM twice" "$CUOTA" cdi generate --library "$BUILD/libcuota.so" --quota a:mem=8G,mem=4G
	refuses 1 "a device of this name twice" "$CUOTA" cdi generate --library "$BUILD/libcuota.so" --quota a:mem=8G --quota a:sm=30
}
