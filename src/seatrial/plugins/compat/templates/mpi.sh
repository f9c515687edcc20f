#!/bin/bash
#SBATCH --job-name=compat-mpi
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# An MPI program that was built for a cluster of Linux hosts: its own mpirun starts it over rsh.
# Change: the program, and which mpirun it was linked with.

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
total=$(wc -l < "$NODEFILE") # a line for each task

# Open MPI, 4 and 5 (the agent has two names). Slurm's own way is ruled out by ^slurm.
# The file has lines "n001 slots=24".
mpirun -n "$total" --hostfile "$HOSTFILE" --mca plm ^slurm --mca ras ^slurm \
  --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self \
  "${program[@]}"

# MPICH and Intel MPI; the file has lines "n001:24":
# mpiexec -n "$total" -launcher ssh -launcher-exec rsh -f "$MACHINEFILE" "${program[@]}"
