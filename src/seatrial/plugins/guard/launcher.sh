#!/bin/bash
# Asks the guard about the programs of a launch line, then becomes the launcher of this name that
# comes later in PATH. Written by `seatrial guard write`. A guard that cannot be asked stops no
# launch.
set -u

guard=@GUARD@
self=${BASH_SOURCE[0]}
name=${self##*/}

said=$("$guard" launch -l "$name" -- "$@" 2> /dev/null)
code=$?
if [ -n "$said" ]; then
  while IFS=$'\t' read -r word text; do
    [ "$word" = unjudged ] || printf '%s: %s: %s\n' "$name" "$word" "$text" >&2
  done <<< "$said"
  [ "$code" -eq 1 ] && exit 1
fi

mapfile -t launchers < <(type -ap -- "$name")
for launcher in "${launchers[@]}"; do
  [ "$launcher" -ef "$self" ] || exec "$launcher" "$@"
done
printf '%s: no other %s is in PATH; load the module of an MPI\n' "$self" "$name" >&2
exit 127
