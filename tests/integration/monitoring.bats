#!/usr/bin/env bats
# A real Prometheus scrapes the real exporter; every alert of examples/prometheus fires and resolves,
# through a real Alertmanager; every query of the Grafana dashboard is answered.

load part.bash

export PROMETHEUS=http://127.0.0.1:19090 EXPORTER=127.0.0.1:19459

setup_file()
{
	need monitoring || return 0
	make_work monitoring
	: >"$work/pids"
	start_exporter
	start_prometheus
	start_alertmanager
	wait_for 20 eval '[ "$(query up{job=\"cuota\"} | jq -r ".[0].value[1]")" = 1 ]'
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	# shellcheck disable=SC2046 # one word each
	stop $(cat "$work/pids" "$work/exporter.pid" "$work"/load.*.pid 2>/dev/null)
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

# background NAME COMMAND...: stopped with the part.
background()
{
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 3>&- </dev/null &
	echo $! >>"$work/pids"
}

start_exporter()
{
	"$work/cuota" exporter --listen "$EXPORTER" >"$work/exporter.log" 2>&1 3>&- </dev/null &
	echo $! >"$work/exporter.pid"
	wait_for 10 curl -sf "http://$EXPORTER/metrics"
}

# The examples with this part's ports, and with minutes turned into seconds.
start_prometheus()
{
	sed -e 's/15s$/1s/' -e "s/127.0.0.1:9093/127.0.0.1:19093/" -e "s/127.0.0.1:9459/$EXPORTER/" \
		-e 's/127.0.0.1:9400/127.0.0.1:19099/' -e '/nvidia_gpu_exporter/,$d' \
		"$examples/prometheus/prometheus.yml" >"$work/prometheus.yml"
	sed -e 's/for: [0-9]*m/for: 2s/' -e 's/\[[0-9]*m\]/[10s]/g' -e 's/offset 5m/offset 10s/' \
		"$examples/prometheus/cuota.rules.yml" >"$work/cuota.rules.yml"
	printf 'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="%s"} 300\n' "$(simulated_uuid)" >"$work/dcgm.prom"
	background webhook python3 "$root/tests/integration/webhook.py" 19099 "$work/alerts" "$work/dcgm.prom"
	background prometheus prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/tsdb" \
		--web.listen-address 127.0.0.1:19090 --log.level warn
	wait_for 20 curl -sf $PROMETHEUS/-/ready
}

start_alertmanager()
{
	cat >"$work/alertmanager.yml" <<-'END'
	route:
	  receiver: here
	  group_by: [alertname]
	  group_wait: 1s
	  group_interval: 1s
	receivers:
	  - name: here
	    webhook_configs:
	      - url: http://127.0.0.1:19099/
	        send_resolved: true
	END
	background alertmanager prometheus-alertmanager --config.file "$work/alertmanager.yml" \
		--storage.path "$work/alertmanager" --web.listen-address 127.0.0.1:19093 --cluster.listen-address=
}

simulated_uuid()
{
	"$work/cuota" status --json | jq -r '.gpus[0].uuid'
}

# query EXPR: the result's vector.
query()
{
	curl -sf --get --data-urlencode "query=$1" $PROMETHEUS/api/v1/query | jq -e .data.result
}

# load_up NAME VARIABLES... -- COMMAND...: a program in group NAME.
load_up()
{
	local name=$1 variables=()
	shift
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	env "${variables[@]}" CUOTA_GROUP="$name" LD_PRELOAD="$work/libcuota.so" "$@" >"load.$name.log" 2>&1 3>&- </dev/null &
	echo $! >"load.$name.pid"
}

# told STATUS ALERT [GROUP]: Alertmanager has sent it.
told()
{
	grep -qx "$1 $2 ${3:-.*}" alerts
}

@test "the metrics are as promtool wants them, text and OpenMetrics" {
	load_up lint CUOTA_MEM=2G CUOTA_SM=50 -- ./take -m 64 -h 5
	wait_for 10 grep -q got_mib load.lint.log
	./cuota metrics | promtool check metrics
	# The parser wants a time with each sample.
	./cuota metrics --openmetrics | sed "/^#/!s/\$/ $(date +%s)/" >metrics.om
	promtool tsdb create-blocks-from openmetrics metrics.om om.tsdb
	stop "$(cat load.lint.pid)"
}

@test "rules, their unit tests and both configurations are accepted" {
	cd "$examples/prometheus"
	promtool check rules cuota.rules.yml
	promtool test rules cuota.rules.test.yml
	promtool check config --syntax-only prometheus.yml
	amtool check-config alertmanager.yml
}

@test "Prometheus has what the ledger says" {
	load_up same CUOTA_MEM=2G CUOTA_SM=50 CUOTA_WEIGHT=70 -- ./take -m 1000 -h 30
	wait_for 10 eval 'query "cuota_memory_used_bytes{group=\"same\"}" | jq -e ".[0]"'
	sleep 1.5
	[ "$(query 'cuota_memory_used_bytes{group="same"}' | jq -r '.[0].value[1]')" = "$(group_field same .memory.used_bytes)" ]
	[ "$(query 'cuota_memory_limit_bytes{group="same"}' | jq -r '.[0].value[1]')" = $((2 << 30)) ]
	[ "$(query 'cuota_sm_limit_ratio{group="same"}' | jq -r '.[0].value[1]')" = 0.5 ]
	[ "$(query 'cuota_weight{group="same"}' | jq -r '.[0].value[1]')" = 70 ]
	stop "$(cat load.same.pid)"
}

@test "every alert fires" {
	load_up full CUOTA_MEM=2G -- ./take -h 120
	load_up slow CUOTA_MEM=39G CUOTA_SM=10 -- ./take -m 64 -s 120
	./take -m 64 -h 120 >load.free.log 2>&1 3>&- </dev/null &
	echo $! >load.free.pid
	head -c 4096 /dev/urandom >ledgers/GPU-00000000-0000-0000-0000-00000000dead.ledger
	wait_for 30 told firing CuotaNearCap full
	wait_for 30 told firing CuotaAllocationsDenied full
	wait_for 30 told firing CuotaIdleHoldingMemory full
	wait_for 30 told firing CuotaThrottledHard slow
	wait_for 30 told firing CuotaUnattachedProcess
	wait_for 30 told firing CuotaOvercommitted
	wait_for 30 told firing CuotaLedgerUnreadable
	# ... and none of them for a group that gives no reason.
	! grep -qE 'CuotaNearCap slow|CuotaThrottledHard full|CuotaAllocationsDenied slow' alerts
}

@test "every query of the dashboard is answered, with data" {
	uuid=$(simulated_uuid)
	count=0
	while IFS= read -r expr; do
		expr=${expr//\$__rate_interval/10s}
		expr=${expr//\$instance/.*}
		expr=${expr//\$gpu/.*}
		expr=${expr//\$group/.*}
		result=$(query "$expr") || { echo "no answer: $expr"; return 1; }
		[ "$(jq length <<<"$result")" -gt 0 ] || { echo "no data: $expr"; return 1; }
		count=$((count + 1))
	done < <(jq -r '.panels[].targets[].expr' "$examples/grafana/cuota.json")
	[ "$count" -ge 25 ]
	[ "$(query "cuota:dcgm_power_usage:watts{uuid=\"$uuid\"}" | jq length)" -eq 1 ]
	# The variables' own queries: label_values(METRIC, LABEL).
	for label in instance uuid; do
		[ "$(query "count by ($label) (cuota_gpu_info)" | jq -r ".[0].metric.$label")" != null ]
	done
	[ "$(query 'count by (group) (cuota_processes)' | jq length)" -ge 2 ]
}

@test "every alert resolves" {
	stop "$(cat load.full.pid)" "$(cat load.slow.pid)" "$(cat load.free.pid)"
	rm ledgers/GPU-00000000-0000-0000-0000-00000000dead.ledger
	for alert in CuotaNearCap CuotaAllocationsDenied CuotaIdleHoldingMemory CuotaThrottledHard \
		CuotaUnattachedProcess CuotaOvercommitted CuotaLedgerUnreadable; do
		wait_for 60 told resolved $alert
	done
}

@test "an exporter that is gone is told, and its return" {
	stop "$(cat exporter.pid)"
	wait_for 30 told firing CuotaExporterDown
	start_exporter
	wait_for 30 told resolved CuotaExporterDown
}

@test "node_exporter's textfile collector takes the file, and never half of it" {
	mkdir textfile
	load_up text CUOTA_MEM=2G -- ./take -m 64 -h 20
	wait_for 10 grep -q got_mib load.text.log
	PATH=$work:$PATH sh "$examples/prometheus/textfile.sh" "$work/textfile"
	background node prometheus-node-exporter --collector.disable-defaults --collector.textfile \
		--collector.textfile.directory "$work/textfile" --web.listen-address 127.0.0.1:19100
	wait_for 10 eval 'curl -sf http://127.0.0.1:19100/metrics | grep -q "^cuota_memory_used_bytes.*group=\"text\""'
	curl -sf http://127.0.0.1:19100/metrics | grep -q '^node_textfile_scrape_error 0'
	[ "$(ls textfile)" = cuota.prom ]
	stop "$(cat load.text.pid)"
}

@test "the job mapping for dcgm-exporter holds each job as long as it runs" {
	mapping()
	{
		DCGM_JOB_MAPPING_DIR=$work/mapping SLURM_JOB_ID=$1 SLURM_JOB_GPUS=$2 SLURM_SCRIPT_CONTEXT=$3 \
			sh "$examples/slurm/dcgm_job_mapping.sh"
	}
	mapping 7 0,1 prolog_slurmd
	mapping 8 0 prolog_slurmd
	[ "$(cat mapping/0)" = "7"$'\n'"8" ]
	[ "$(cat mapping/1)" = 7 ]
	mapping 7 0,1 epilog_slurmd
	[ "$(cat mapping/0)" = 8 ]
	[ ! -e mapping/1 ]
}
