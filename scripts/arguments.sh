# Command-line handling shared by the shell scripts. Source it before any work starts.
#
# The help text of a script is its header comment: the lines after `#!` that begin with `#`.

script_file="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$(basename "$0")"
script_name="scripts/$(basename "$0")"

# Prints the header comment of the running script.
print_help() { sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$script_file"; }

# Rejects the command line: `refuse MESSAGE` prints one line and exits with status 2.
refuse() {
  echo "$script_name: $1" >&2
  exit 2
}

# Prints the help text and exits if any argument asks for it: `help_if_asked "$@"`. Arguments after
# `--` belong to another program and are ignored.
help_if_asked() {
  local argument
  for argument; do
    case "$argument" in
    --) return ;;
    -h | --help)
      print_help
      exit 0
      ;;
    esac
  done
}

# Handles the arguments of a script that takes none: `no_arguments "$@"`.
no_arguments() {
  help_if_asked "$@"
  [ $# = 0 ] || refuse "unexpected argument \`$1\`; known options: --help"
}

# Handles the arguments of a script that passes options on to another program:
# `check_options FLAGS WITH_VALUE "$@"`, each a list of option names. Refuses unknown options, missing
# values and other arguments. With `takes_command=yes`, a command may follow, which is not checked.
check_options() {
  local flags="$1" with_value="$2" argument pending=
  shift 2
  for argument; do
    if [ -n "$pending" ]; then
      pending=
      continue
    fi
    case "$argument" in
    -h | --help) help_if_asked "$argument" ;;
    --) [ "${takes_command:-no}" = no ] || return 0 ;;
    -*) ;;
    *) [ "${takes_command:-no}" = no ] || return 0 ;;
    esac
    case " $flags $with_value " in
    *" ${argument%%=*} "*) ;;
    *) refuse "unknown argument \`$argument\`; known options: --help $flags $with_value" ;;
    esac
    case " $with_value " in *" $argument "*) pending="$argument" ;; esac
  done
  [ -z "$pending" ] || refuse "$pending needs a value; see --help"
}

# Handles the arguments of a script that runs named parts: `parse_parts DEFAULT EXTRA "$@"`, where
# DEFAULT lists the parts that run if none is named and EXTRA those that only run by name. Sets the
# array `parts`, without duplicates and in the order of the lists.
parse_parts() {
  local default="$1" extra="$2" argument part
  shift 2
  help_if_asked "$@"
  for argument; do
    case " $default $extra " in
    *" $argument "*) ;;
    *) refuse "unknown part \`$argument\`; known parts: $default${extra:+ $extra}; options: --help" ;;
    esac
  done
  parts=()
  for part in $default $extra; do
    if [ $# = 0 ]; then
      case " $default " in *" $part "*) parts+=("$part") ;; esac
    else
      case " $* " in *" $part "*) parts+=("$part") ;; esac
    fi
  done
}

# Succeeds if a part was selected: `selected PART`.
selected() { case " ${parts[*]} " in *" $1 "*) ;; *) return 1 ;; esac; }
