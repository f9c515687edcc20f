#!/bin/bash
#SBATCH --job-name=compat-serial
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# A farm of serial jobs: the lines of a file are run on all cores of the job, each on the next that
# is free. A line that fails is named, and the job fails; the others run to their end.
# Change: the file of commands.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # module load python
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -- bash "$0" "$@"
fi

set -eu
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
commands=${1:-commands.txt} # a command a line
mapfile -t lines < "$commands"

places=() # a host for each core
for host in "${hosts[@]}"; do
  for ((i = 0; i < tasks; i++)); do places+=("$host"); done
done

exec {ended}<> <(:) # a pipe: a command that ends writes its place and number
start() {           # place, number
  {
    code=0
    rsh "${places[$1]}" "cd '$PWD' && { ${lines[$2]}; }" < /dev/null > "out.$2" 2> "err.$2" || code=$?
    echo "$1 $2 $code" >&"$ended"
  } &
}
next=0 running=0 failed=0
for place in "${!places[@]}"; do
  [ "$next" -lt "${#lines[@]}" ] || break
  start "$place" "$next"
  next=$((next + 1)) running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  read -r -u "$ended" place number code
  running=$((running - 1))
  if [ "$code" -ne 0 ]; then
    failed=$((failed + 1))
    echo "line $((number + 1)) on ${places[place]}: exit code $code, see err.$number" >&2
  fi
  if [ "$next" -lt "${#lines[@]}" ]; then
    start "$place" "$next"
    next=$((next + 1)) running=$((running + 1))
  fi
done
echo "$((${#lines[@]} - failed)) of ${#lines[@]} commands ended well"
[ "$failed" -eq 0 ]
