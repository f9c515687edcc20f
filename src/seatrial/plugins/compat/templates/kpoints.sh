#!/bin/bash
#SBATCH --job-name=compat-kpoints
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#
# WIEN2k with k-points in parallel: lapw1 and lapw2 start a process for each line of .machines by
# the remote shell of WIEN2k's parallel_options (setenv USE_REMOTE 1).
# Change: the case's directory is that in which you submit; the command at the end; the ranks.

if [ -z "${SEATRIAL_COMPAT-}" ]; then
  # ---- Set-up: modules, profiles and variables, before the job starts itself again.
  # module load wien2k
  # By these any mpirun starts its ranks by the job's rsh: Open MPI 4, 5, MPICH, Intel MPI.
  export OMPI_MCA_plm=^slurm OMPI_MCA_ras=^slurm OMPI_MCA_plm_rsh_agent=rsh
  export PRTE_MCA_plm=^slurm PRTE_MCA_ras=^slurm PRTE_MCA_plm_ssh_agent=rsh
  export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=rsh
  export I_MPI_HYDRA_BOOTSTRAP=ssh I_MPI_HYDRA_BOOTSTRAP_EXEC=rsh
  # ---- End of the set-up. The script starts itself again as a compat job: ssh and rsh then reach
  # each node of it. Nodes get PATH, LD_LIBRARY_PATH, MODULE*, OMP_*, and what -e names, as they are
  # here (-e MKLROOT -e 'FFTW_*'); a variable that is set further down stays on the first node.
  exec seatrial compat run -e 'OMPI_*' -e 'PRTE_*' -e 'HYDRA_*' -e 'I_MPI_*' -e 'WIEN*' \
    -- bash "$0" "$@"
fi

set -eu
# The ranks of each k-point. With more than 1 lapw1_mpi runs by MPI, as parallel_options say:
#   setenv WIEN_MPIRUN "mpirun -np _NP_ -machinefile _HOSTS_ _EXEC_"
ranks=${RANKS:-1}
mapfile -t hosts < "$SEATRIAL_COMPAT/hosts"
tasks=${SLURM_NTASKS_PER_NODE:-2} # on each node

# A line `speed:host` or `speed:host:ranks` for each k-point that runs at a time; equal speeds, so
# k-points are dealt out evenly. `granularity` cuts the list of k-points into so many parts for each
# line. lapw0 runs by MPI on all hosts.
{
  of_each=:$ranks
  if [ "$ranks" -eq 1 ]; then of_each=; else echo "lapw0: ${hosts[*]/%/:$tasks}"; fi
  for host in "${hosts[@]}"; do
    for ((i = 0; i < tasks / ranks; i++)); do echo "1:$host$of_each"; done
  done
  echo "granularity:1"
  echo "extrafine:1"
} > .machines

export USE_REMOTE=1 # by rsh to each host, also to this one
run_lapw -p -ec 0.0001
