#!/bin/bash
#SBATCH --job-name=compat-espresso
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# Quantum ESPRESSO (pw.x) with its k-points in pools: ranks by MPI over rsh, the pools by -nk.
# Change: the input (sbatch job.sh si.in), the pools, the mpirun that pw.x was linked with.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # module load quantum-espresso
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -e ESPRESSO_PSEUDO -e ESPRESSO_TMPDIR -- bash "$0" "$@"
fi

set -eu
input=${1:-pw.in}
pools=${POOLS:-1} # divides the ranks: each pool has a part of the k-points
total=$(wc -l < "$NODEFILE") # a line for each rank

# Ranks are full cores here: further threads of the mathematical library would share them.
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}

# Open MPI, 4 and 5; Debian's pw.x wants mpirun.openmpi.
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
"$mpirun" -n "$total" --hostfile "$HOSTFILE" --mca plm ^slurm --mca ras ^slurm \
  --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self \
  -x OMP_NUM_THREADS pw.x -nk "$pools" -in "$input"

# MPICH and Intel MPI:
# mpiexec -n "$total" -launcher ssh -launcher-exec rsh -f "$MACHINEFILE" \
#   pw.x -nk "$pools" -in "$input"
