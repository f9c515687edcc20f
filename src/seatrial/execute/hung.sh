# What the processes of a run wait in, on this node: `bash hung.sh RUN DIRECTORY`.
# First one line for each kind of process, as `n001: 12 pw.x in futex_wait_queue`; after an empty line
# each process: its command, status, wchan, kernel stack, and the stacks of its threads where there is
# a gdb that may attach to it.
set -u
_run=$1 _directory=$2
_node=${SLURMD_NODENAME:-$HOSTNAME}
LONGEST_S=20 DEBUGGED=8 STATUS='State|Threads|VmRSS|HugetlbPages|Cpus_allowed_list|voluntary_ctxt'
unset DEBUGINFOD_URLS  # gdb must not wait for another host

is_of_run() {  # pid
  if grep -qszxF "SEATRIAL_RUN=$_run" "/proc/$1/environ"; then
    # Nodes of an emulated cluster see each other's processes.
    [ -z "${SLURMD_NODENAME-}" ] || grep -qszxF "SLURMD_NODENAME=$SLURMD_NODENAME" "/proc/$1/environ"
  else  # the shells of the job script began before the run had a name
    [ "/proc/$1/cwd" -ef "$_directory" ] && tr '\0' ' ' 2> /dev/null < "/proc/$1/cmdline" \
      | grep -qE '/(job\.sh|slurm_script) $'
  fi
}
fields_of() {  # pid: _name and _waits, a word for what it waits in
  local key value
  _name='' _waits=''
  while IFS=$':\t' read -r key value; do
    case $key in
      Name) _name=${value/#slurm_script/bash} ;;  # slurmd's copy of the job script
      State) _waits=$value; break ;;
    esac
  done 2> /dev/null < "/proc/$1/status"
  local wchan
  read -r wchan 2> /dev/null < "/proc/$1/wchan" || [ -n "${wchan-}" ] || wchan=0
  case $_waits in
    R*) _waits=running ;;
    Z* | X*) _waits=ended ;;
    *) [ "$wchan" = 0 ] && _waits="in ${_waits:0:1} state" || _waits="in $wchan" ;;
  esac
}

_pids=() _kinds=()
for _path in /proc/[0-9]*; do
  _pid=${_path#/proc/}
  [ "$_pid" != "$$" ] && [ -O "$_path" ] && is_of_run "$_pid" || continue
  fields_of "$_pid"
  [ -n "$_name" ] && [ "$_waits" != ended ] || continue
  _pids+=("$_pid")
  _kinds+=("${_name// /_} $_waits")
done
[ ${#_pids[@]} -gt 0 ] || exit 0

printf '%s\n' "${_kinds[@]}" | sort | uniq -c | sort -rn | while read -r _number _kind; do
  echo "$_node: $_number $_kind"
done
echo
_debugged=0
for _i in "${!_pids[@]}"; do
  _pid=${_pids[_i]}
  echo "== $_node process $_pid: ${_kinds[_i]}"
  echo "command: $(tr '\0' ' ' 2> /dev/null < "/proc/$_pid/cmdline" | head -c 500)"
  grep -sE "^($STATUS)" "/proc/$_pid/status"
  cat 2> /dev/null /proc/"$_pid"/task/*/wchan | sed 's/$/\n/'
  cat 2> /dev/null "/proc/$_pid/stack"
  case ${_kinds[_i]} in bash\ *) continue ;; esac
  if command -v gdb > /dev/null && [ $((_debugged += 1)) -le "$DEBUGGED" ]; then
    timeout "$LONGEST_S" gdb -nx -batch -p "$_pid" -ex 'thread apply all bt' < /dev/null 2>&1 \
      | grep -vE '^(\[New LWP|\[Thread debugging|Using host libthread_db|\[Inferior)' | head -c 8192
    echo
  fi
done
