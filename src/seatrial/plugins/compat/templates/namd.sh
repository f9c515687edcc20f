#!/bin/bash
#SBATCH --job-name=compat-namd
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# NAMD, or another program of Charm++ that was built for a network of hosts (net-linux, netlrts):
# charmrun starts its processes by the remote shell, from a nodelist.
# Change: the program and its input. Builds for verbs or MPI are started by the `mpi` template.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # module load namd
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -- bash "$0" "$@"
fi

set -eu
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
