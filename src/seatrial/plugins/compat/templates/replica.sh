#!/bin/bash
#SBATCH --job-name=compat-replica
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# Replica exchange over sockets: this node's program listens, replicas on all nodes connect to it.
# Change: the program of the exchange, that of a replica, how they are told host and port.

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
port=${PORT:-45000}
master=${hosts[0]} # this script runs here
replicas=$((${#hosts[@]} * tasks))

exec {ended}<> <(:) # a pipe: a program that ends writes its exit code, its log, and who it was
start() {           # log, who it is, command
  {
    code=0
    "${@:3}" < /dev/null > "$1" 2>&1 || code=$?
    echo "$code $1 $2" >&"$ended"
  } &
}
start exchange.log "the exchange on $master" ./exchange --port "$port" --replicas "$replicas"
for ((i = 0; i < replicas; i++)); do
  host=${hosts[i / tasks]}
  start "replica.$i.log" "replica $i on $host" \
    rsh "$host" "cd '$PWD' && exec ./replica --connect '$master:$port' --number $i"
done

# Whichever program fails first ends the job at once, and is named: the others would wait for it.
# What is left of them on the nodes ends with the compat job.
for ((running = replicas + 1; running > 0; running--)); do
  read -r -u "$ended" code log who
  if [ "$code" -ne 0 ]; then
    echo "$who ended with exit code $code, see $log" >&2
    exit 1
  fi
done
