#!/bin/bash
#SBATCH --job-name=compat-gaussian
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=24
#SBATCH --time=01:00:00
#
# Gaussian (g09, g16) with Linda: a worker on each node, with shared memory within the node.
# Change: the version, where it is installed, the input, the memory.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # export g16root=/opt/gaussian; . "$g16root/g16/bsd/g16.profile"
  # Scratch files go to the node, not to the shared file system.
  export GAUSS_SCRDIR=${GAUSS_SCRDIR:-${TMPDIR:-/tmp}}
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -e 'GAUSS_*' -e g16root -e g09root -e GV_DIR -e PGI_TERM -e _DSM_BARRIER \
    -- bash "$0" "$@"
fi

set -eu
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
gaussian=g16 # or g09
input=${1:-input.com}

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
