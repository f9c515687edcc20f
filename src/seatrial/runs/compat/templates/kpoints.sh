#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# WIEN2k with k-points in parallel: lapw1 and lapw2 start a process for each line of .machines by
# the remote shell of WIEN2k's parallel_options (setenv USE_REMOTE 1, setenv WIEN_MPIRUN ...).
# Change: the case's directory is that in which you submit; the command at the end.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
# A line `speed:host` for each k-point that runs at a time; equal speeds, so k-points are dealt out
# evenly. `granularity` cuts the list of k-points into so many parts for each line.
{
  for host in "${hosts[@]}"; do
    for ((i = 0; i < tasks; i++)); do echo "1:$host"; done
  done
  echo "granularity:1"
  echo "extrafine:1"
} > .machines

# With MPI inside a k-point: a line `1:n001:4` has four ranks there, and `lapw0:` names all hosts.
# echo "lapw0: ${hosts[*]/%/:$tasks}" >> .machines

export USE_REMOTE=1 # by rsh to each host, also to this one
run_lapw -p -ec 0.0001
