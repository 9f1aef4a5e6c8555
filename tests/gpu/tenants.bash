# What containers.sh and mps.sh share: guests for memory and for SM time, checks, and the count at the end.
# shellcheck shell=bash disable=SC2034 # used by both

passed=0
failed=0

# check WHAT COMMAND...: one line, counted.
check()
{
	local what=$1
	shift
	if "$@"; then
		echo "ok    $what"
		passed=$((passed + 1))
	else
		echo "WRONG $what"
		failed=$((failed + 1))
	fi
}

within()
{
	awk -v low="$1" -v high="$2" -v value="$3" 'BEGIN { exit !(value != "" && value >= low && value <= high) }'
}

# field NAME FILE: of "name=value" or "name": value.
field()
{
	sed -nE "s/.*\b$1\"?[=:] ?([0-9.]+).*/\1/p" "$2" 2>/dev/null | tail -1
}

wait_for()
{
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.2
	done
}

# The guest for memory: PyTorch where it is, else the small program of the simulated tests.
if python3 -c 'import torch' 2>/dev/null; then
	hoard()
	{
		printf '%s\n' "python3 $PWD/tests/gpu/hoard.py $1"
	}
	guest=PyTorch
else
	hoard()
	{
		printf '%s\n' "$O/tests/take -h $1"
	}
	guest=take
fi

# The guest for SM time: kernels of 0.57 ms that fill the card, in a queue; its rate tells its share.
busy()
{
	printf '%s\n' "$O/tests/work --us 570 --mode queue --settle 3 --seconds 5"
}

group_used()
{
	"$O/cuota" status --json | python3 -c '
import json, sys
groups = [g for gpu in json.load(sys.stdin)["gpus"] for g in gpu["groups"] if g["name"] == sys.argv[1]]
print(groups[0]["memory"]["used_bytes"] if groups else 0)' "$1"
}

ledger_clean()
{
	[ "$("$O/cuota" status --json | python3 -c '
import json, sys
print(sum(g["memory"]["used_bytes"] for gpu in json.load(sys.stdin)["gpus"] for g in gpu["groups"]))')" -eq 0 ]
}

finish()
{
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}
