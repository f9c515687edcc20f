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
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
program=(./a.out)

# Programs on the nodes get OMP_* as they are when the compat job begins: these are set before.
threads=${SLURM_CPUS_PER_TASK:-1}
for host in "${hosts[@]}"; do echo "$host slots=$tasks"; done > hostfile

# PE=n gives each rank n cores; OMP_NUM_THREADS goes to all ranks by -x (MPICH: -genv NAME value).
export OMP_NUM_THREADS=$threads
mpirun -n $((${#hosts[@]} * tasks)) --hostfile hostfile --mca plm ^slurm --mca ras ^slurm \
  --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self \
  --map-by "ppr:$tasks:node:PE=$threads" --bind-to core -x OMP_NUM_THREADS -x OMP_PLACES=cores \
  "${program[@]}"
