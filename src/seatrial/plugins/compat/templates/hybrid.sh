#!/bin/bash
#SBATCH --job-name=compat-hybrid
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --time=01:00:00
#
# MPI between the nodes and OpenMP within: a few ranks on each node, each with threads.
# Change: the program; ranks (--ntasks-per-node) times threads (--cpus-per-task) fill a node.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # module load openmpi
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -e 'OMPI_*' -e 'PRTE_*' -e 'I_MPI_*' -- bash "$0" "$@"
fi

set -eu
program=(./a.out)
total=$(wc -l < "$NODEFILE") # a line for each rank
of_each=${SLURM_NTASKS_PER_NODE:-1}
threads=${SLURM_CPUS_PER_TASK:-1}

# PE=n gives each rank n cores; OMP_NUM_THREADS goes to all ranks by -x (MPICH: -genv NAME value).
export OMP_NUM_THREADS=$threads
mpirun -n "$total" --hostfile "$HOSTFILE" --mca plm ^slurm --mca ras ^slurm \
  --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self \
  --map-by "ppr:$of_each:node:PE=$threads" --bind-to core -x OMP_NUM_THREADS -x OMP_PLACES=cores \
  "${program[@]}"
