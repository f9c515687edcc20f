# Becomes a program of a compat job, on a node of it:  attach.sh JOB [PROGRAM ARGUMENT ...]
# The job's own process on this node tells which directory is the job's. Without a program: a shell.
job=$1
shift
for file in $(grep -lsz "^SEATRIAL_COMPAT_KEEPER=$job\." /proc/[0-9]*/environ); do
  J=$(grep -hsz '^SEATRIAL_COMPAT=' "$file" | tr -d '\0')
  J=${J#SEATRIAL_COMPAT=}
  if [ -x "$J/enter" ]; then
    if [ $# -eq 0 ]; then exec "$J/enter"; fi
    exec "$J/enter" -- "$@"
  fi
done
echo "seatrial: job $job is no compat job, or is not one on ${SLURMD_NODENAME:-this host}" >&2
exit 2
