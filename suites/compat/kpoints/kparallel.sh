#!/bin/bash
# Runs the k-points of a calculation on the hosts of `.machines`, as lapw1para of WIEN2k does.
#
#   kparallel.sh K-POINTS PROGRAM          runs PROGRAM NUMBER K-POINTS for each number
#
# Of .machines it reads the lines `speed:host`: a host takes as many k-points at a time as it has lines,
# and gets the next when one is done. Lines of other kinds (granularity, extrafine, lapw0) are for
# programs that are not here.
set -u
points=$1 program=$2
[ -r .machines ] || { echo ".machines is not there" >&2; exit 1; }
while IFS=: read -r speed host _; do
  case $speed in
    '' | '#'* | granularity | extrafine | lapw0 | residue) ;;
    *[!0-9]*) echo ".machines: $speed:$host is no line that is known" >&2; exit 1 ;;
    *) echo "${host// /}" ;;
  esac
done < .machines > places
for ((i = 0; i < points; i++)); do echo "$program $i $points"; done > commands
bash farm.sh places commands
