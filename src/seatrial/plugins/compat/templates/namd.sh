#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# NAMD, or another program of Charm++ that was built for a network of hosts (net-linux, netlrts):
# charmrun starts its processes by the remote shell, from a nodelist.
# Change: the program and its input. Builds for verbs or MPI are started by the `mpi` template.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
input=${1:-input.namd}

{
  echo "group main ++shell rsh"
  for host in "${hosts[@]}"; do echo "host $host ++cpus $tasks"; done
} > nodelist

# ++timeout: charmrun waits so many seconds until all processes have connected back.
charmrun "+p$((${#hosts[@]} * tasks))" ++nodelist nodelist ++remote-shell rsh ++timeout 60 \
  "$(command -v namd2)" "$input"
