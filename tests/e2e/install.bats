#!/usr/bin/env bats
# `make install` and what it installs: every file of the list and no other, man pages, pkg-config, completion,
# and a tree that works wherever it is put.

setup()
{
	: "${BUILD:?the build directory}"
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	ROOT=$BATS_TEST_TMPDIR/root
}

install_to()
{
	make -C "$TOP" --no-print-directory O="$BUILD" DESTDIR="$ROOT" "$@"
}

@test "install puts every file of the list where it says, and uninstall takes it away" {
	install_to install
	(cd "$ROOT" && find . \( -type f -o -type l \) | sed 's/^\.//' | sort) >"$BATS_TEST_TMPDIR/found"
	make -C "$TOP" --no-print-directory O="$BUILD" installed-files | sort >"$BATS_TEST_TMPDIR/wanted"
	diff "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/found"
	[ "$(readlink "$ROOT/usr/local/lib/libcuota.so")" = libcuota.so.0 ]
	[ -x "$ROOT/usr/local/bin/cuota" ]
	install_to uninstall
	# The policy is the admin's.
	[ "$(cd "$ROOT" && find . \( -type f -o -type l \))" = ./etc/cuota/cuota.conf ]
}

@test "an admin's policy is never written over" {
	install_to install
	echo '[default]' >"$ROOT/etc/cuota/cuota.conf"
	install_to install
	[ "$(cat "$ROOT/etc/cuota/cuota.conf")" = '[default]' ]
}

@test "an unprivileged install works under a prefix of its own" {
	install_to install PREFIX=/home/alice/cuota
	[ -e "$ROOT/home/alice/cuota/etc/cuota/cuota.conf" ]
	[ -z "$(find "$ROOT" -path "$ROOT/home/alice/cuota" -prune -o -type f -print)" ]
}

@test "the installed command finds the installed library" {
	install_to install
	"$ROOT/usr/local/bin/cuota" run --mem 8G --print-env | grep -qF "LD_PRELOAD='$(realpath "$ROOT/usr/local/lib/libcuota.so")'"
}

@test "pkg-config knows the header and the library to preload" {
	command -v pkg-config >/dev/null || skip "no pkg-config here"
	install_to install
	export PKG_CONFIG_PATH=$ROOT/usr/local/lib/pkgconfig
	[ "$(pkg-config --modversion cuota)" = "$("$BUILD/cuota" version --json | jq -r .version)" ]
	[ "$(pkg-config --variable=preload cuota)" = /usr/local/lib/libcuota.so ]
	printf '#include <cuota.h>\nint main(void) { struct cuota_info i = { 0 }; return (int)i.size; }\n' >"$BATS_TEST_TMPDIR/p.c"
	gcc -Wall -Werror -std=c99 -pedantic -I"$ROOT/usr/local/include" -fsyntax-only "$BATS_TEST_TMPDIR/p.c"
	g++ -Wall -Werror -I"$ROOT/usr/local/include" -fsyntax-only -x c++ "$BATS_TEST_TMPDIR/p.c" 2>/dev/null || ! command -v g++
}

@test "mandoc has nothing to warn of, and every option and variable is in the pages" {
	install_to install
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -Wwarning "$ROOT"/usr/local/share/man/man?/*
	fi
	local command option page=$TOP/man/cuota.1
	for command in $("$BUILD/cuota" --help | sed -n '/^Commands:/,$s/^  \([a-z]*\) .*/\1/p'); do
		grep -q "^.Ss $command" "$page"
		for option in $("$BUILD/cuota" "$command" --help | sed -n 's/^ *\(-., \)\?--\([a-z.-]*\).*/\2/p'); do
			[ "$option" != help ] && [ "$option" != usage ] || continue
			# In the section of the command.
			awk -v c="$command" '/^\.S[sh]/ { on = $2 == c } on' "$page" | grep -q -- "Fl -$option\b" ||
				{ echo "cuota $command --$option is not in cuota.1"; false; }
		done
	done
	for variable in $(sed -n 's/^\(ENV\|ALIAS\)(\([A-Z_]*\),.*/\2/p' "$TOP/src/base/env.def"); do
		grep -q "^.It Ev $variable$" "$ROOT/usr/local/share/man/man7/libcuota.7"
	done
	! grep -q '@' "$ROOT/usr/local/share/man/man7/libcuota.7"
}

complete()
{
	bash -c 'PATH='"$BUILD"':$PATH; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cuota cuota; printf "%s\n" "${COMPREPLY[@]}"' \
		"$TOP/completions/cuota.bash" "$@"
}

@test "completion offers commands, options and values" {
	[ "$(complete cuota sta)" = status ]
	complete cuota run --me | grep -qx -- --mem-per-process
	[ "$(complete cuota run --priority h)" = high ]
	[ "$(complete cuota usage --by us)" = user ]
	complete cuota status --js | grep -qx -- --json
	[ "$(complete cuota config che)" = check ]
}

@test "the tarball works wherever it is put" {
	make -C "$TOP" --no-print-directory O="$BUILD" tarball >/dev/null
	mkdir "$BATS_TEST_TMPDIR/some where"
	tar -xzf "$BUILD"/cuota-*-linux-*.tar.gz -C "$BATS_TEST_TMPDIR"
	local tree=("$BATS_TEST_TMPDIR"/cuota-*/)
	[ "$("${tree[0]}bin/cuota" run --mem 8G -- echo ran)" = ran ]
	# The file of the module names what is there.
	local module=("${tree[0]}"modulefiles/cuota/*.lua)
	grep -q 'pathJoin(root, "lib/libcuota.so")' "${module[0]}"
	[ -e "${tree[0]}lib/libcuota.so" ] && [ -e "${tree[0]}share/man/man1/cuota.1" ]
	# A path that LD_PRELOAD cannot hold is told of.
	cp -r "${tree[0]}" "$BATS_TEST_TMPDIR/some where/cuota"
	run "$BATS_TEST_TMPDIR/some where/cuota/bin/cuota" run --mem 8G -- echo ran
	[ "$status" -eq 125 ]
	[[ $output == *"without spaces and colons"* ]]
}

@test "the unit of the exporter is one that systemd takes" {
	command -v systemd-analyze >/dev/null || skip "no systemd here"
	install_to install PREFIX=/usr
	sed -i "s|^ExecStart=/usr/bin/cuota|ExecStart=$BUILD/cuota|" "$ROOT/usr/lib/systemd/system/cuota-exporter.service"
	systemd-analyze --man=no verify "$ROOT/usr/lib/systemd/system/cuota-exporter.service"
}
