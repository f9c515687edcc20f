#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=24
#SBATCH --time=01:00:00
#
# Gaussian (g09, g16) with Linda: a worker on each node, with shared memory within the node.
# Change: the version, where it is installed, the input, the memory.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
gaussian=g16 # or g09
input=${1:-input.com}

# Gaussian's own set-up; its scratch files go to the node, not to the shared file system.
# export g16root=/opt/gaussian; . "$g16root/g16/bsd/g16.profile"
export GAUSS_SCRDIR=${GAUSS_SCRDIR:-${TMPDIR:-/tmp}}

# These replace %LindaWorkers, %NProcShared, %Mem and %UseSSH of the input file, which must not be
# there as well: the input would win.
IFS=,
export GAUSS_WDEF="${hosts[*]}"               # workers: n001,n002; n001:2 for two on it
export GAUSS_PDEF=${SLURM_CPUS_PER_TASK:-1}   # processors of each worker
export GAUSS_MDEF=${GAUSS_MDEF:-4GB}          # memory of each worker
export GAUSS_SDEF=ssh                         # how workers are started: the ssh of this job
unset IFS

# Linda itself has no ssh of its own choice: it calls the one that is first on PATH.
export GAUSS_LFLAGS="-opt 'Tsnet.Node.lindarsharg: ssh'"
"$gaussian" < "$input" > "${input%.com}.log"
