# The nodes of a compat job in a job of Grid Engine or PBS, read by compat.sh and by ssh of the job. A
# node is reached by a task that the scheduler starts there: by `qrsh -inherit` or `pbs_tmrsh`.
#
# Grid Engine takes as many tasks at a time on a host as the job has slots there, so nothing of ours
# stays in one: the task that starts `compat.sh node` leaves it there, in a session of its own, and
# ends. It sees the end of the job in the job's directory (`over`), and that nobody is there any more
# to write that (`beat` stays as it is). When all is ended there it writes `gone.NODE`.
#
# pbs_tmrsh passes exit codes, and neither input nor output: what a command prints is written to files
# of the job's directory, and from there to where it belongs. Input is refused.
readonly SILENT=120 PAST=4

require_starter() {  # why the other nodes cannot be reached: in _why; "" if they can
  local program=qrsh of="Grid Engine"
  [ "$nodes" = gridengine ] || program=pbs_tmrsh of=PBS
  _why=
  command -v "$program" > /dev/null ||
    _why="other nodes of a job of $of are reached by $program, which is not on PATH here"
}

hosts_of_job() {  # hosts, and _tasks_of each
  local host slots _
  hosts=()
  declare -gA _tasks_of=()
  if [ "$nodes" = gridengine ]; then
    while read -r host slots _; do
      [ -n "$host" ] || continue
      [ -n "${_tasks_of[$host]-}" ] || hosts+=("$host")
      _tasks_of[$host]=$((${_tasks_of[$host]:-0} + slots))
    done < "${PE_HOSTFILE:-/dev/null}" || return
    [ ${#hosts[@]} -gt 0 ] || { here && hosts=("$_here"); }  # it has no parallel environment
  else
    while read -r host; do
      [ -n "$host" ] || continue
      [ -n "${_tasks_of[$host]-}" ] || hosts+=("$host")
      _tasks_of[$host]=$((${_tasks_of[$host]:-0} + 1))
    done < "${PBS_NODEFILE-}" || return
  fi
}

own_of() {  # nodes; _own = this one, as the job names it
  local host name=${SEATRIAL_COMPAT_NODE-}
  [ -n "$name" ] || read -r name < /proc/sys/kernel/hostname
  _own=$1  # where the job may name it otherwise than it does itself, this is the first one
  for host; do
    if [ "$host" = "$name" ]; then _own=$host; return; fi
    [ "${host%%.*}" != "${name%%.*}" ] || _own=$host
  done
}

on_node() {  # node, words: becomes a task there that runs these words; _muted: it has no input
  local host=$1
  shift
  set -- /usr/bin/env "SEATRIAL_COMPAT_NODE=$host" "$@"
  [ "$nodes" = gridengine ] || by_tmrsh "$host" "$@"
  local options=(-inherit -noshell)
  [ -z "${_muted-}" ] || options+=(-nostdin)
  # Grid Engine ends a job one of whose tasks lost its qrsh: none is ended with the job's processes.
  exec env -u SEATRIAL_COMPAT_JOB "${_limit[@]}" qrsh "${options[@]}" "$host" "$@"
}

by_tmrsh() {  # node, words; ends with their exit code
  local host=$1 folder pid code kind tails=()
  shift
  folder=$(mktemp -d "$J/task.XXXXXX") && : > "$folder/1" && : > "$folder/2" || exit 255
  pbs_tmrsh "$host" /bin/bash -pc 'exec > "$0/1" 2> "$0/2" < /dev/null; exec "$@"' "$folder" "$@" \
    < /dev/null &
  pid=$!
  trap 'kill "$pid"' TERM INT HUP
  for kind in 1 2; do
    tail -q -c +1 -f -s 0.1 --pid="$pid" "$folder/$kind" >&"$kind" &
    tails+=($!)
  done
  if [ -z "${_muted-}" ]; then
    {
      if IFS= read -r -d '' -n 1 _; then
        [ -z "${_began-}" ] || : > "$_began"  # it is not to be tried again
        echo "ssh: pbs_tmrsh passes no input to $host; use ssh -n, and let the command read a file" >&2
        : > "$folder/input"
        kill "$pid"
      fi
    } <&0 &
    tails+=($!)
  fi
  wait "$pid"
  code=$?
  [ ! -e "$folder/input" ] || code=255
  wait "${tails[@]:0:2}"
  [ -n "${_muted-}" ] || kill "${tails[2]}" 2> /dev/null
  rm -rf -- "$folder"
  exit "$code"
}

# ---- the start and the end, on the first node -----------------------------------------------------

step_by_tasks() {  # runs `compat.sh node` on each node, prints what they say, until stdin ends
  local host mark=$SEATRIAL_COMPAT_KEEPER
  own_of "${hosts[@]}"
  rm -f "$J"/gone.*
  for host in "${hosts[@]}"; do
    if [ "$host" = "$_own" ]; then
      SEATRIAL_COMPAT_NODE=$host bash "$J/compat.sh" leave < /dev/null &
    else
      (
        _muted=1 _limit=(timeout -k 2 $((wait + 10)))
        on_node "$host" "SEATRIAL_COMPAT=$J" "SEATRIAL_COMPAT_KEEPER=$mark" "PATH=$PATH" \
          "SEATRIAL_COMPAT_ATTEMPT=$attempt" /bin/bash "$J/compat.sh" leave
      ) < /dev/null &
    fi
  done
  while read -r _; do :; done
  is_left || [ ! -e "$J/settings" ] || : > "$J/over"
  wait
}

end_of_nodes() {  # waits until all nodes that answered have ended what the job left there
  local host i left
  [ ! -e "$J/settings" ] || : > "$J/over"
  for ((i = 0; i < (LOOK + GRACE + PAST) * 20; i++)); do
    left=
    while read -r host _; do [ -e "$J/gone.$host" ] || left=1; done < "$J/ports"
    if [ -z "$left" ] || [ ! -e "$J/settings" ]; then break; fi
    pause 0.05
  done 2> /dev/null
}

# ---- on each node ---------------------------------------------------------------------------------

leave() {  # leaves `compat.sh node` behind, and tells what it says first
  local line said
  exec {said}< <(exec setsid bash "$J/compat.sh" node < /dev/null 2>> "$J/log")
  IFS= read -r -t "$wait" -u "$said" line && printf '%s\n' "$line"
}

tell_end() {  # nothing of the job is left here; the last node removes the job's directory
  local host
  here
  { : > "$J/gone.$_here"; } 2> /dev/null || return
  while read -r host _; do
    [ -e "$J/gone.$host" ] || return
  done < "$J/ports"
  [ -e "$J/spared" ] || clear_away 0  # else `stop` runs, which does so
}

await_over() {  # until the job is over, or nobody has told for long that it goes on
  local beat='' now same=0
  until over; do
    pause "$LOOK"
    same=$((same + LOOK))
    if read -r now < "$J/beat" && [ "$now" != "$beat" ]; then beat=$now same=0; fi
    [ "$same" -lt $SILENT ] || break
  done 2> /dev/null
}
