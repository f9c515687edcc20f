#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --time=01:00:00
#
# MPI between the nodes and OpenMP within: a few ranks on each node, each with threads.
# Change: the program; ranks (--ntasks-per-node) times threads (--cpus-per-task) fill a node.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
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
