# Timed parts with a closing summary, for scripts/check and scripts/test. Source it after
# `set -euo pipefail`.

part_name=
part_began=0
part_durations=()

# Runs one part and records its duration: `timed NAME COMMAND…`. The first failure ends the script.
timed() {
  part_name="$1"
  part_began=$SECONDS
  printf '\n== %s\n' "$part_name"
  "${@:2}"
  part_durations+=("$(printf '%6d s  %s' "$((SECONDS - part_began))" "$part_name")")
  part_name=
}

# Prints the duration of every part and the total, also if a part failed.
print_durations() {
  local status=$?
  [ -z "$part_name" ] ||
    part_durations+=("$(printf '%6d s  %s: FAILED' "$((SECONDS - part_began))" "$part_name")")
  [ "${#part_durations[@]}" = 0 ] || printf '\n' >&2
  printf '%s\n' "${part_durations[@]}" "$(printf '%6d s  total' "$SECONDS")" >&2
  exit "$status"
}
trap print_durations EXIT
