# A compat job: a job whose nodes look like a cluster of hosts with ssh. This file lies in the
# directory of the job with `enter`, `rsh`, `ssh` and what a start writes there:
#
#   settings     mode (shim or sshd), port, wait (seconds), quorum (how many nodes must answer, or
#                which per cent of them), nodes (those of slurm, gridengine or pbs, or here: this
#                host alone), expect (how many hosts the job is to have; 0: any number), remove
#                (whether this directory goes when the job has ended)
#   variables    names of variables that programs get, one a line; * stands for any letters
#   hosts        the nodes, one a line; those that did not answer are taken out
#   environment  the variables of the job, read by `enter` before each program
#   answered     how many nodes answered, of how many, in which time (s), which did not; in words
#   hostfile, machinefile, nodefile   the hosts in other forms, for a command by hand
#   attempt      1, or 2: the start on those nodes alone that answered in the first one
#   log          what the nodes said
#   kept         there if too few nodes answered: the directory stays
#
#   bash compat.sh run COMMAND ...   starts, runs the command, stops; ends with its exit code
#   bash compat.sh start PROCESS     starts; the job is over when that process is
#   bash compat.sh stop              ends what the job left on its nodes
#
# On each node runs `compat.sh node`, in a step of the job (in Grid Engine and PBS: tasks.sh). Beside it waits `compat.sh reap`, in a
# session of its own, for the end of `node`: then it ends every process that has the mark of the job
# (SEATRIAL_COMPAT_JOB) in its environment. So nothing is left when Slurm kills the steps of the
# job, also where it does not track processes that left their group (proctrack/pgid).
set -u
umask 077
J=${BASH_SOURCE[0]%/*}
[ -d "$J" ] && J=$(cd -- "$J" && pwd) || exit 91
readonly J BROKEN=95 NOT_BOOTED=96 GRACE=3 LOOK=2
readonly UNWRITABLE="cannot write in $J; see its space, quota and permissions"
readonly ALWAYS='PATH LD_LIBRARY_PATH MODULE* LOADEDMODULES _LMFILES_ OMP_* LANG LC_* TZ HOME USER
LOGNAME SHELL TMPDIR SLURM_JOB_* SLURM_JOBID SLURM_ARRAY_* SLURM_SUBMIT_* SLURM_CONF
SLURM_CLUSTER_NAME SLURM_NNODES SLURM_NODELIST SLURM_NTASKS SLURM_NPROCS SLURM_TASKS_PER_NODE
SLURM_CPUS_ON_NODE SGE_* JOB_ID JOB_NAME NSLOTS NHOSTS NQUEUES PE PE_HOSTFILE PBS_* HOSTFILE MACHINEFILE NODEFILE NODELIST SEATRIAL_*'

fail() {  # exit code, why; this says all that a broken start's directory would tell
  local code=$1
  shift
  if [ "$code" -eq $BROKEN ] && [ "${remove-}" = True ]; then rm -rf -- "$J"; fi
  echo "seatrial: compat: $*" >&2
  exit "$code"
}

here() {  # _here = the name of this node
  _here=${SEATRIAL_COMPAT_NODE-${SLURMD_NODENAME-}}
  [ -n "$_here" ] || read -r _here < /proc/sys/kernel/hostname
}

pause() {  # seconds; without a process
  [ -n "${_never-}" ] || exec {_never}<> <(:)
  read -r -t "$1" -u "$_never" _
}

# ---- the start, on the first node ---------------------------------------------------------------

find_hosts() {
  case $nodes in
    slurm)
      scontrol show hostnames "${SLURM_JOB_NODELIST-}" > "$J/hosts" 2>> "$J/log" ||
        fail $BROKEN "the nodes of job ${SLURM_JOB_ID-} are not known: $(tail -n 1 "$J/log")"
      ;;
    gridengine | pbs)
      hosts_of_job 2>> "$J/log" ||
        fail $BROKEN "the nodes of job $(job_id) are not known: $(tail -n 1 "$J/log")"
      printf '%s\n' "${hosts[@]}" > "$J/hosts"
      ;;
    *)
      here
      echo "$_here" > "$J/hosts"
      ;;
  esac
  mapfile -t hosts < "$J/hosts"
  if [ "$expect" -gt 0 ] && [ "${#hosts[@]}" -ne "$expect" ]; then
    fail $BROKEN "the job has ${#hosts[@]} of $expect nodes: ${hosts[*]:0:8}"
  fi
  if [ "$by_tasks" ] && [ "${#hosts[@]}" -gt 1 ]; then
    require_starter
    [ -z "$_why" ] || fail $BROKEN "$_why"
  fi
  local host
  for host in "${hosts[@]}"; do
    [[ $host =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] ||
      fail $BROKEN "$host is no name of a node that ssh can take; it must begin with a letter or digit"
  done
  [ "$by_tasks" ] || count_tasks
}

job_id() {
  case $nodes in
    slurm) echo "${SLURM_JOB_ID-}" ;;
    gridengine) echo "${JOB_ID-}" ;;
    pbs) echo "${PBS_JOBID-}" ;;
    *) echo "${leader-$$}" ;;
  esac
}

passes() {  # a name; whether programs get the variable: _named and _patterns are of `variables`
  [ "$1" != SEATRIAL_COMPAT_NODE ] || return 1
  [ -z "${_named[$1]-}" ] || return 0
  case ${1^^} in *TOKEN* | *KEY* | *SECRET* | *PASSWORD*) return 1 ;; esac
  local pattern
  for pattern in "${_patterns[@]}"; do
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == $pattern ]] && return 0
  done
  return 1
}

keep_environment() {
  local name
  local -A _named=()
  local _patterns=()
  set -f
  _patterns+=($ALWAYS)
  set +f
  while read -r name; do
    case $name in *'*'*) _patterns+=("$name") ;; ?*) _named[$name]=1 ;; esac
  done < "$J/variables"
  {
    for name in $(compgen -e); do
      ! passes "$name" || printf 'export %s=%q\n' "$name" "${!name}" || return
    done
    case $PATH: in "$J":*) ;; *) printf 'PATH=%q:$PATH\n' "$J" || return ;; esac
    printf '_directory=%q\n' "$PWD"
  } > "$J/environment" 2>> "$J/log"
}

# In a session of its own: where the process of the job is killed, Slurm kills its group, too, and
# would take seconds to tell the nodes.
hold() {  # process, attempt; the step on the nodes lasts until the process has ended
  leader=$1 attempt=$2
  mapfile -t hosts < "$J/hosts"
  watch | step
}

watch() {
  trap 'exit 0' TERM
  echo "$BASHPID" > "$J/watcher"
  local beats=0
  while kill -0 "$leader" 2> /dev/null; do
    [ -z "$by_tasks" ] || [ $((beats++ % 20)) -ne 0 ] || echo "$beats" > "$J/beat"
    pause 0.5
  done
}

step() {  # becomes a process that runs `compat.sh node` on each node, and prints what they say
  echo "$BASHPID" > "$J/step"
  local mark=$SEATRIAL_COMPAT_JOB
  unset SEATRIAL_COMPAT_JOB SEATRIAL_RUN
  export SEATRIAL_COMPAT_KEEPER=$mark SEATRIAL_COMPAT_ATTEMPT=$attempt
  if [ "$nodes" = here ]; then exec bash "$J/compat.sh" node; fi
  if [ "$by_tasks" ]; then step_by_tasks; exit; fi
  local job=$SLURM_JOB_ID conf=${SLURM_CONF-} name
  for name in "${!SLURM_@}"; do unset "$name"; done
  [ -z "$conf" ] || export SLURM_CONF=$conf
  local IFS=,
  local list=${hosts[*]} gpus=()
  # A step of one task would be shown the GPUs of one task alone.
  [ "${GPUS_PER_NODE:-0}" -eq 0 ] || gpus=("--gpus-per-node=$GPUS_PER_NODE")
  exec srun --quiet --jobid="$job" --overlap --nodes="${#hosts[@]}" --ntasks="${#hosts[@]}" \
    --nodelist="$list" --ntasks-per-node=1 --no-kill --cpu-bind=none --mem=0 --mpi=none --chdir=/ \
    --kill-on-bad-exit=0 "${gpus[@]}" bash "$J/compat.sh" node
}

boot() {  # attempt; _missing = the nodes that did not answer within the time
  attempt=$1
  echo "$attempt" > "$J/attempt"
  exec {_said}< <(exec setsid bash "$J/compat.sh" hold "$leader" "$attempt" 2>> "$J/log" < /dev/null)
  await_nodes
  exec {_said}<&-
}

await_nodes() {
  local -A silent=() port_of=()
  local host word line end heard=0
  for host in "${hosts[@]}"; do silent[$host]=1; done
  end=$((SECONDS + wait))
  while [ "$heard" -lt "${#hosts[@]}" ] && [ "$SECONDS" -lt "$end" ]; do
    read -r -t $((end - SECONDS)) -u "$_said" word host line || break
    heard=$((heard + 1))
    if [ "$word" = up ]; then
      unset "silent[$host]"
      port_of[$host]=$line
    else
      echo "$host: $line" >> "$J/log"
    fi
  done
  _missing=
  for host in "${hosts[@]}"; do
    [ -z "${silent[$host]-}" ] || _missing+="${_missing:+,}$host"
    [ -z "${port_of[$host]-}" ] || echo "$host ${port_of[$host]}" >> "$J/ports"
  done
  _answered=$((${#hosts[@]} - ${#silent[@]}))
}

is_quorum() {  # whether enough nodes answered to go on; the first one, where the command runs, must
  local needed=$quorum
  case $quorum in *%) needed=$(((${#hosts[@]} * ${quorum%\%} + 99) / 100)) ;; esac
  [ "$needed" -le ${#hosts[@]} ] || needed=${#hosts[@]}
  [ "$_answered" -ge "$needed" ] || return
  case ",$_missing," in *",${hosts[0]},"*) return 1 ;; esac
}

# A step that has a dead node does not last, and a node may answer late. So the step is ended, and
# another one has only the nodes that answered.
leave_out() {
  local host IFS=, missing=$_missing
  local answered=()
  for host in "${hosts[@]}"; do
    case ",$_missing," in *",$host,"*) ;; *) answered+=("$host") ;; esac
  done
  hosts=("${answered[@]}")
  printf '%s\n' "${hosts[@]}" > "$J/hosts" &&
    echo 2 > "$J/attempt" || fail $BROKEN "$UNWRITABLE"
  unset IFS
  end_step
  rm -f "$J/over"
  [ "$mode" = shim ] || prepare_keys  # the step may have ended before, and removed them
  boot 2
  [ -z "$_missing" ] || return
  _missing=$missing
}

end_step() {
  local pid i
  if read -r pid < "$J/watcher" && kill "$pid"; then
    if read -r pid < "$J/step"; then
      for ((i = 0; i < (GRACE + 3) * 50; i++)); do
        # Its parent may have been ended before it, and not every init takes in dead processes at
        # once: such a one has no program.
        [ -e "/proc/$pid/exe" ] || break
        pause 0.02
      done
      kill "$pid"  # what a node that did not answer runs holds the step
    fi
  fi 2> /dev/null
}

of_missing() {  # the lines of the log about nodes that did not answer; else those about no node
  local lines
  lines=$(grep -ve '^$' -e 'lacks support for cpu binding' -e ' CANCELLED AT ' "$J/log")
  grep -wF "${_missing//,/$'\n'}" <<< "$lines" || grep -vwF -f "$J/hosts" <<< "$lines"
}

start() {
  leader=$1
  local up before seconds what
  IFS=' ' read -r up _ < /proc/uptime
  before=${up/./}
  rm -f "$J/over"  # of a job that Slurm started again
  # Where the step on the nodes ends at once, its reapers leave who tells of that.
  echo "$leader $$" > "$J/spared" && : > "$J/log" || fail $BROKEN "$UNWRITABLE"
  find_hosts
  [ "$mode" = shim ] || prepare_keys
  keep_environment || fail $BROKEN "$UNWRITABLE"
  boot 1
  local asked=${#hosts[@]} boots=1 without=
  if [ -n "$_missing" ]; then
    if is_quorum && leave_out; then
      without="; the job goes on without, as its quorum is $quorum"
    else
      boots=
    fi
  fi
  # Where Slurm binds nothing, srun complains about the option in each step.
  if grep -q 'lacks support for cpu binding' "$J/log"; then
    : > "$J/step_options"
  else
    echo --cpu-bind=none > "$J/step_options"
  fi
  [ "${GPUS_PER_NODE:-0}" -eq 0 ] || echo "--gpus-per-node=$GPUS_PER_NODE" >> "$J/step_options"
  IFS=' ' read -r up _ < /proc/uptime
  printf -v seconds %02d $(((10#${up/./} - 10#$before + 5) / 10))  # in tenths
  seconds=${seconds%?}.${seconds: -1}
  what="$_answered of $asked node$([ "$asked" -eq 1 ] || echo s) answered in $seconds s"
  if [ -n "$_missing" ]; then
    local said
    said=$(of_missing | tail -n 1)
    what+="; no answer from $_missing${said:+ ($said)}$without"
  fi
  printf '%s\n' "$_answered $asked $seconds ${_missing:--}" "$what" > "$J/answered"
  if [ -z "$boots" ]; then
    : > "$J/kept"  # for its log
    stop
    fail $NOT_BOOTED "$what; see $J/log"
  fi
  rm -f "$J/spared"
  [ "$mode" = shim ] || write_client
  echo "In compat job $(job_id): $what" >&2
}

stop() {
  [ -e "$J/settings" ] || return 0  # a reaper was first, and removed the directory
  echo "${leader:-$PPID} $$" > "$J/spared"
  if [ "$by_tasks" ]; then
    end_of_nodes
  fi
  end_step
  [ ! -e "$J/settings" ] || : > "$J/over"  # for a node that the end of srun does not reach
  rm -f "$J/watcher" "$J/step" "$J/spared" "$J/key" "$J/host_key"
}

count_tasks() {  # _tasks_of = the tasks on each of the hosts: Slurm says 2(x3),1 for four of them
  local part times host=0 of_nodes=${SLURM_TASKS_PER_NODE-}
  declare -gA _tasks_of=()
  for part in ${of_nodes//,/ }; do
    times=1
    case $part in *x*) times=${part#*x} times=${times%')'} ;; esac
    while [ $((times--)) -gt 0 ]; do
      [ -z "${hosts[host]-}" ] || _tasks_of[${hosts[host]}]=${part%%'('*}
      host=$((host + 1))
    done
  done
}

host_files() {  # the hosts in the forms that each run of a trial has, too
  local host i file
  for file in hostfile machinefile nodefile; do : > "$J/$file" || return; done
  for host in "${hosts[@]}"; do
    echo "$host slots=${_tasks_of[$host]:-1}" >> "$J/hostfile" &&
      echo "$host:${_tasks_of[$host]:-1}" >> "$J/machinefile" || return
    for ((i = 0; i < ${_tasks_of[$host]:-1}; i++)); do echo "$host" || return; done >> "$J/nodefile"
  done
  NODELIST=${SLURM_JOB_NODELIST-}
  if [ -n "$_missing" ] || [ -z "$NODELIST" ]; then
    printf -v NODELIST %s, "${hosts[@]}"
    NODELIST=${NODELIST%,}
  fi
  printf 'export NODELIST=%q\n' "$NODELIST" >> "$J/environment"
}

run() {
  local code=0
  if [ "${SEATRIAL_COMPAT-}" != "$J" ]; then  # once more, so that the mark is in the environment
    export SEATRIAL_COMPAT=$J PATH=$J:$PATH
    local id
    id=$(job_id)
    export SEATRIAL_COMPAT_JOB=${id:-$$}.$$.$RANDOM
    exec bash "$J/compat.sh" run "$@"
  fi
  trap 'stop; clear_away 143' TERM
  trap 'stop; clear_away 129' HUP
  trap : INT
  export HOSTFILE=$J/hostfile MACHINEFILE=$J/machinefile NODEFILE=$J/nodefile NODELIST=
  start $$
  host_files || {
    stop
    fail $BROKEN "$UNWRITABLE"
  }
  env -- "$@"  # a program, never a function of this script
  code=$?
  stop
  clear_away "$code"
}

clear_away() {  # exit code; by another program, as NFS keeps the directory of a script that runs
  if [ "$remove" = True ] && [ ! -e "$J/kept" ]; then
    exec bash -c 'rm -rf -- "$1"; exit "$2"' - "$J" "$1"
  fi
  exit "$1"
}

# ---- on each node -------------------------------------------------------------------------------

over() {
  [ -e "$J/over" ] || [ ! -e "$J/settings" ] || is_left
}

is_left() {  # whether the job goes on with a second attempt, and this is of the first
  local now
  read -r now < "$J/attempt" && [ "$now" != "$SEATRIAL_COMPAT_ATTEMPT" ]
}

node() {
  trap 'exec < /dev/null' TERM  # its input ends
  trap '' INT HUP
  here
  exec {_pipe}> >(exec setsid bash "$J/compat.sh" reap > /dev/null 2>&1)
  local reaper=$! code
  if [ "$mode" = shim ]; then echo "up $_here 0"; else serve; fi
  [ -z "$by_tasks" ] || await_over
  while [ -z "$by_tasks" ]; do  # the input ends with the job; also where a dead slurmd lets this step go on
    read -r -t $LOOK _
    code=$?
    if [ "$code" -eq 1 ] || over; then break; fi
  done
  exec {_pipe}>&-
  while kill -0 "$reaper" 2> /dev/null; do pause 0.01; done
  exit 0
}

marked() {  # _pids = the processes of the job on this node, but for those that stop it
  local file pid
  _pids=()
  for file in $(grep -lzsx "SEATRIAL_COMPAT_JOB=$SEATRIAL_COMPAT_KEEPER" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    pid=${pid%/environ}
    case " $_spared " in *" $pid "*) ;; *) _pids+=("$pid") ;; esac
  done
  if [ -n "$_listener" ]; then  # a session of sshd has no readable environment, but its parent
    # A dead one stays for as long as its parent does not ask for its end.
    ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$_listener/status" || _pids+=("$_listener")
    for file in $(grep -lsx "PPid:[[:space:]]*$_listener" /proc/[0-9]*/status); do
      file=${file#/proc/}
      _pids+=("${file%/status}")
    done
  fi
}

reap() {
  trap '' TERM INT HUP
  local i _listener= _spared= _pids=()
  while read -r i; do _listener=$i; done
  if is_left; then
    [ -z "$_listener" ] || kill "$_listener" 2> /dev/null
    return
  fi
  over || : > "$J/over"
  [ ! -e "$J/spared" ] || read -r _spared < "$J/spared"
  rm -f "$J/key" "$J/host_key"
  marked
  kill -TERM "${_pids[@]}" 2> /dev/null
  for ((i = 0; i < GRACE * 20 && ${#_pids[@]} > 0; i++)); do
    pause 0.05
    marked
  done
  for ((i = 0; i < 40 && ${#_pids[@]} > 0; i++)); do
    kill -KILL "${_pids[@]}" 2> /dev/null
    pause 0.05
    marked
  done
  if [ "$by_tasks" ]; then
    tell_end
    exit 0
  fi
  clear_away 0
}

# shellcheck source=/dev/null
. "$J/settings"
# shellcheck source=/dev/null
[ "$mode" = shim ] || . "$J/sshd.sh"
case $nodes in gridengine | pbs) by_tasks=1 ;; *) by_tasks= ;; esac
# shellcheck source=/dev/null
[ -z "$by_tasks" ] || . "$J/tasks.sh"
what=${1:?run, start, stop, node or reap}
shift
case $what in
  run | start | stop | hold | node | reap | leave) "$what" "$@" ;;
  *) fail 2 "$what is none of run, start, stop" ;;
esac
