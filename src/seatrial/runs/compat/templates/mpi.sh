#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=24
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# An MPI program that was built for a cluster of Linux hosts: its own mpirun starts it over rsh.
# Change: the program, and which mpirun it was linked with.
set -eu

# The script runs itself as a compat job: from here on ssh and rsh reach each node of the job.
[ -n "${SEATRIAL_COMPAT-}" ] || exec seatrial compat run -- bash "$0" "$@"
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node
program=(./a.out)

# Open MPI wants "host slots=n", MPICH and Intel MPI "host:n".
for host in "${hosts[@]}"; do echo "$host slots=$tasks"; done > hostfile
for host in "${hosts[@]}"; do echo "$host:$tasks"; done > machinefile
total=$((${#hosts[@]} * tasks))

# Open MPI, 4 and 5 (the agent has two names). Slurm's own way is ruled out by ^slurm.
mpirun -n "$total" --hostfile hostfile --mca plm ^slurm --mca ras ^slurm \
  --mca plm_ssh_agent rsh --mca plm_rsh_agent rsh --mca pml ob1 --mca btl tcp,self \
  "${program[@]}"

# MPICH and Intel MPI:
# mpiexec -n "$total" -launcher ssh -launcher-exec rsh -f machinefile "${program[@]}"
