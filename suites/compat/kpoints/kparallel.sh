#!/bin/bash
# Runs the k-points of a calculation on the hosts of `.machines`, as lapw1para of WIEN2k does.
#
#   kparallel.sh all K-POINTS PROGRAM     runs PROGRAM NUMBER K-POINTS for each number
#   kparallel.sh one PLACE PROGRAM ...    runs it at a line of .machines; called by rsh on its first host
#
# Of .machines it reads lines `speed:host`, `speed:host:ranks` and `speed:host:ranks host:ranks`, each
# of which takes a k-point at a time, and gets the next when one is done. One with several ranks runs
# by MPI: $WIEN_MPIRUN, in which _NP_ is their number, _HOSTS_ a file with a line for each, and _EXEC_
# PROGRAM_mpi with its arguments. Lines of other kinds (granularity, extrafine, lapw0) are for programs
# that are not here.
set -u

all() {  # k-points, program
  local points=$1 program=$2 speed hosts host ranks i place=0
  [ -r .machines ] || { echo "seatrial: .machines is not there" >&2; exit 1; }
  : > places
  while IFS=: read -r speed hosts; do
    case $speed in
      '' | '#'* | granularity | extrafine | lapw0 | residue) continue ;;
      *[!0-9]*) echo "seatrial: .machines: $speed:$hosts is no line that is known" >&2; exit 1 ;;
    esac
    for host in $hosts; do
      ranks=1
      case $host in *:*) ranks=${host##*:} host=${host%:*} ;; esac
      for ((i = 0; i < ranks; i++)); do echo "$host"; done
    done > ".machine$place"
    head -n 1 ".machine$place" >> places
    place=$((place + 1))
  done < .machines
  for ((i = 0; i < points; i++)); do printf 'bash kparallel.sh one $PLACE %q %s %s\n' "$program" "$i" "$points"; done > commands
  bash farm.sh places commands
}

one() {  # place, program, its arguments
  local hosts=.machine$1 ranks line
  shift
  ranks=$(wc -l < "$hosts")
  [ "$ranks" -gt 1 ] || exec "$@"
  printf -v line '%q ' "$1_mpi" "${@:2}"
  line=${WIEN_MPIRUN/_EXEC_/$line}
  line=${line/_NP_/$ranks}
  eval "${line/_HOSTS_/$hosts}"
}

"$@"
