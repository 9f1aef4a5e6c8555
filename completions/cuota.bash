# bash completion for cuota(1). Commands and options are asked of the command itself, so that this file never
# falls behind it.

_cuota_options()
{
	"$1" help "$2" 2>/dev/null | sed -n 's/^ \{2,6\}\(-., \)\?\(--[a-z.-]*\).*/\2/p'
}

_cuota_commands()
{
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

_cuota_groups()
{
	"$1" status --interval 0 --json 2>/dev/null | sed -n '/"groups"/,$s/^ \{10\}"name": "\(.*\)",$/\1/p'
}

_cuota()
{
	local cuota=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]:-} i words=''

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_cuota_commands "$cuota") --help --version" -- "$word")
		return
	fi
	if [ "$command" = run ]; then
		# From the first word that is no option on, it is the other command's turn.
		for ((i = 2; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			--) ;;
			--mem|--mem-per-process|--sm|--weight|--priority|--group|-[mpswPg]) ((i++)); continue ;;
			=) ((i++)); continue ;;
			-*) continue ;;
			*) ;;
			esac
			if declare -F _command_offset >/dev/null; then
				[ "${COMP_WORDS[i]}" != -- ] || ((i++))
				_command_offset "$i"
			fi
			return
		done
	fi
	case $before in
	--priority|-P) words='high normal low' ;;
	--by|-b) [ "$command" != usage ] || words='user group job gpu command' ;;
	--format|-f) words='table csv json html' ;;
	--sort) words='name memory share' ;;
	--group|--exempt) words=$(_cuota_groups "$cuota") ;;
	esac
	if [ -z "$words" ]; then
		case $command in
		set|status) words="$(_cuota_groups "$cuota") $(_cuota_options "$cuota" "$command")" ;;
		config) words="check $(_cuota_options "$cuota" config)" ;;
		help) words=$(_cuota_commands "$cuota") ;;
		hooks) words=$("$cuota" hooks 2>/dev/null | awk '{ print $2 }' | sort -u) ;;
		*) words=$(_cuota_options "$cuota" "$command") ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	if [ "$command" = run ] && [ "${#COMPREPLY[@]}" -eq 0 ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	fi
}

complete -o default -F _cuota cuota
