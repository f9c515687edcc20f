#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# Replica exchange over sockets: this node's program listens, replicas on all nodes connect to it.
# Change: the program of the exchange, that of a replica, how they are told host and port.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
port=${PORT:-45000}
master=${hosts[0]} # this script runs here
replicas=$((${#hosts[@]} * tasks))

./exchange --port "$port" --replicas "$replicas" > exchange.log 2>&1 &
exchange=$!

started=()
for ((i = 0; i < replicas; i++)); do
  host=${hosts[i / tasks]}
  rsh "$host" "cd '$PWD' && exec ./replica --connect '$master:$port' --number $i" \
    < /dev/null > "replica.$i.log" 2>&1 &
  started+=($!)
done

# A replica that dies would let the others wait for ever: its end ends the job, and it is named.
code=0
for i in "${!started[@]}"; do
  if ! wait "${started[i]}"; then
    echo "replica $i on ${hosts[i / tasks]} ended with an error, see replica.$i.log" >&2
    code=1
    kill "$exchange" 2> /dev/null || true
    break
  fi
done
wait "$exchange" || [ "$code" -ne 0 ] || code=$?
exit "$code" # what is left on the nodes ends with the compat job
