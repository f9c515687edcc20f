#!/bin/bash
# TaskProlog of Slurm: a second look at what a step really runs, since `srun bash -c ./a.out` shows
# the filter a shell alone. It goes on in the background until the task ends, and only
# logs. Written by `seatrial guard write`.
set -u

if [ "${SLURM_LOCALID:-0}" = 0 ]; then
  @GUARD@ watch -b "$PPID" > /dev/null 2>&1 < /dev/null
fi
exit 0
