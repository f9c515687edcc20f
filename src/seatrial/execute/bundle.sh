# The runs of a bundle, in one allocation: in the order of the list `runs`, at_once at a time. Lines
# above this one set `folder`, `at_once`, `cores` (of each run), and `job`: the id of this job where
# the scheduler may run it again, else nothing.
#
# `runs`      a line for each run: its id, its walltime in seconds, its directory; tabs between them
# `progress`  written here: `start ID TIME` and `end ID EXIT-CODE REASON`; REASON is - for a run that
#             ended by itself, else timeout, cancelled or skipped; the first line is `job JOB`
# `cancel.ID` made by the driver: the run ID is to be ended, or not to begin
# `skip.ID`   made by the driver: the run ID is not to begin
#
# Each run is a process group. A run that is ended gets SIGTERM, and SIGKILL after `grace` seconds.
# Between two runs nothing is forked but the run's own shell: bash has `wait -n`, and a `sleep` that
# runs beside the runs ends that once a second, to look at walltimes.
set -um
export _together=1 # for the scripts of the runs
grace=5
cd -- "$folder" || exit 91
set -C
if { : > progress; } 2> /dev/null; then
  [ -z "$job" ] || printf 'job %s\n' "$job" >> progress
elif [ ! -e progress ]; then
  echo "seatrial: cannot write in $folder; see its space, quota and permissions" >&2
  exit 92
else
  claim=
  [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || read -r claim < progress
  if [ -z "$job" ] || [ "$claim" != "job $job" ]; then
    echo 'seatrial: another job has claimed these runs; nothing was started' >&2
    exit 93
  fi
fi
set +C
declare -A over=()  # runs that ended before the scheduler started this job again
while read -r what id _; do
  [ "$what" = end ] && over[$id]=1
done < progress
exec 9>> progress
mapfile -t runs < runs

declare -A run_of=() due=() reason=() killed=() slot_of=()  # by the process of the run
slots=()  # which are free
for ((i = at_once - 1; i >= 0; i--)); do slots+=("$i"); done
next=0
ticker=

# The CPUs of this job, shared out to runs that run beside each other.
cpus=()
share=0
if [ "$at_once" -gt 1 ] && command -v taskset > /dev/null; then
  while read -r key list; do
    [ "$key" = Cpus_allowed_list: ] || continue
    for part in ${list//,/ }; do
      for ((i = ${part%-*}; i <= ${part#*-}; i++)); do cpus+=("$i"); done
    done
  done < /proc/self/status
  share=$((${#cpus[@]} / at_once))
  # On a host that others share, runs are bound only if they take all of it.
  if [ "$share" -lt "$cores" ] || { [ "$share" -gt "$cores" ] && [ -z "${SLURM_JOB_ID-}" ]; }; then
    share=0
  fi
fi

say() {  # a line of progress
  printf '%s\n' "$*" >&9
}

now() {  # _now = seconds since the epoch
  _now=${EPOCHREALTIME-}
  _now=${_now/[!0-9]/.}
  [ -n "$_now" ] || _now=$(date +%s.%N)
}

start() {  # the next run of the list
  local line=${runs[next]} id limit path slot
  next=$((next + 1))
  id=${line%%$'\t'*}
  line=${line#*$'\t'}
  limit=${line%%$'\t'*}
  path=${line#*$'\t'}
  [ -z "${over[$id]-}" ] || return 0
  if [ -e "cancel.$id" ] || [ -e "skip.$id" ]; then
    say end "$id" 0 skipped
    return 0
  fi
  slot=${slots[-1]}
  unset 'slots[-1]'
  now
  say start "$id" "$_now"
  if [ "$share" -gt 0 ]; then
    local IFS=,
    cd "$path" && exec taskset -c "${cpus[*]:slot * share:share}" bash ./job.sh \
      >> stdout 2>> stderr < /dev/null 9>&- &
  else
    cd "$path" && exec bash ./job.sh >> stdout 2>> stderr < /dev/null 9>&- &
  fi
  run_of[$!]=$id
  due[$!]=$((SECONDS + limit + 1))
  slot_of[$!]=$slot
}

alive() {  # whether a run goes on; one that is being ended does until all its processes have ended
  if [ -z "${reason[$1]-}" ]; then
    kill -0 "$1" 2> /dev/null
  else
    kill -0 -- "-$1" 2> /dev/null
  fi
}

finish() {  # a run has ended
  local id=${run_of[$1]} code
  wait "$1" 2> /dev/null
  code=$?
  kill -KILL -- "-$1" 2> /dev/null  # what it left in the background
  say end "$id" "$code" "${reason[$1]:--}"
  slots+=("${slot_of[$1]}")
  unset "run_of[$1]" "due[$1]" "reason[$1]" "killed[$1]" "slot_of[$1]"
}

look() {  # end the runs that have reached their walltime, or that are not wanted any more
  local pid id other
  for pid in "${!run_of[@]}"; do
    id=${run_of[$pid]}
    if [ -n "${reason[$pid]-}" ]; then
      if [ "$SECONDS" -ge "${killed[$pid]}" ]; then
        kill -KILL -- "-$pid" 2> /dev/null
        # Launchers put some of their processes into groups of their own.
        for other in $(grep -lzsx "SEATRIAL_RUN=$id" /proc/[0-9]*/environ); do
          other=${other#/proc/}
          kill -KILL "${other%/environ}" 2> /dev/null
        done
      fi
      continue
    fi
    if [ "$SECONDS" -ge "${due[$pid]}" ]; then
      reason[$pid]=timeout
    elif [ -e "cancel.$id" ]; then
      reason[$pid]=cancelled
    else
      continue
    fi
    killed[$pid]=$((SECONDS + grace))
    kill -TERM -- "-$pid" 2> /dev/null
  done
}

stop() {  # the job itself is being ended: the runs that run have no end of their own
  trap '' TERM
  local pid left i
  for pid in "${!run_of[@]}"; do kill -TERM -- "-$pid" 2> /dev/null; done
  for ((i = 0; i < grace * 10; i++)); do
    left=
    for pid in "${!run_of[@]}"; do
      if kill -0 -- "-$pid" 2> /dev/null; then left=1; fi
    done
    [ -n "$left" ] || break
    sleep 0.1
  done
  for pid in "${!run_of[@]}"; do kill -KILL -- "-$pid" 2> /dev/null; done
  [ -z "$ticker" ] || kill "$ticker" 2> /dev/null
  exit 143
}
trap stop TERM

while :; do
  while [ "${#slots[@]}" -gt 0 ] && [ "$next" -lt "${#runs[@]}" ]; do start; done
  [ "${#run_of[@]}" -gt 0 ] || break
  if [ -z "$ticker" ]; then
    sleep 1 9>&- &
    ticker=$!
  fi
  wait -n 2> /dev/null
  for pid in "${!run_of[@]}"; do alive "$pid" || finish "$pid"; done
  if ! kill -0 "$ticker" 2> /dev/null; then
    wait "$ticker" 2> /dev/null
    ticker=
    look
  fi
done
[ -z "$ticker" ] || kill "$ticker" 2> /dev/null
exit 0
# end of the script
