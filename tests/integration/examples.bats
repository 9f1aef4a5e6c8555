#!/usr/bin/env bats
# No example without a test: each file under examples/ is used by a part, and each is in the table of
# docs/integrations.md.

load part.bash

examples_list()
{
	(cd "$root" && find examples -type f ! -name '*.pyc' | sort)
}

@test "every example is used by a part" {
	cd "$root"
	for file in $(examples_list); do
		case $file in
		examples/kubernetes/*.yaml) continue ;; # kubernetes.bats takes all that there are
		esac
		grep -qF -e "${file##*/}" tests/integration/*.bats tests/integration/*.bash ||
			grep -qF -e "$(basename "$(dirname "$file")")" tests/integration/*.bats ||
			{ echo "no test uses $file"; return 1; }
	done
}

@test "every example's directory is in the table, and the table's files exist" {
	cd "$root"
	for dir in $(examples_list | cut -d/ -f1-2 | sort -u); do
		grep -q "$dir" docs/integrations.md || { echo "$dir is not in the table"; return 1; }
	done
	for file in $(grep -oE 'tests/[a-z0-9/_]+\.(bats|sh|py)|[a-z_]+\.bats' docs/integrations.md docs/with-other-sharing.md | cut -d: -f2 | sort -u); do
		[ -e "$file" ] || [ -e "tests/integration/$file" ] || { echo "no $file"; return 1; }
	done
	for page in slurm containers kubernetes jupyter monitoring with-other-sharing integrations; do
		for link in $(grep -oE '\]\([^)#]+\)' "docs/$page.md" | tr -d '])(' ); do
			[ -e "docs/$link" ] || [ "$link" = measurements.md ] || { echo "docs/$page.md: no $link"; return 1; }
		done
	done
}

@test "the scripts are as shellcheck wants them" {
	command -v shellcheck >/dev/null || skip "no shellcheck"
	cd "$root"
	# shellcheck disable=SC2046 # one word each
	shellcheck $(examples_list | grep -E '\.(sh|sbatch)$')
}
