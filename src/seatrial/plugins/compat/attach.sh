# Becomes a program of a compat job, on a node of it:  attach.sh JOB x11|- [PROGRAM ARGUMENT ...]
# The job's own process on this node tells which directory is the job's. Without a program: a shell.
# With x11 it must have a display, which Slurm gives to the steps of a job that asked for one.
job=$1 x11=$2
shift 2
if [ "$x11" = x11 ] && [ -z "${DISPLAY-}" ]; then
  echo "seatrial: --x11: job $job has no display on ${SLURMD_NODENAME:-this host}; Slurm gives one only to a job of \`salloc --x11\`, typed where you have a display, if the site allows it (PrologFlags=X11)" >&2
  exit 2
fi
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
