# On a node of a job of Grid Engine or PBS: runs a command of ssh, and ends with its exit code. The
# command has a session of its own, so that the task of the scheduler never ends by a signal: Grid
# Engine ends a whole job of which a task did. Who called ends the command by the file `BEGAN.end`.
#
#   SEATRIAL_COMPAT_BEGAN=... carry.sh PROGRAM ARGUMENT ...
J=${BASH_SOURCE[0]%/*}
trap : TERM INT HUP
setsid "$@" <&0 &
pid=$!
{
  exec {never}<> <(:)
  until [ -e "$SEATRIAL_COMPAT_BEGAN.end" ] || [ -e "$J/over" ] || [ ! -e "$J/settings" ]; do
    read -r -t 0.5 -u "$never" _
  done
  kill -TERM -- "-$pid"
  read -r -t 3 -u "$never" _
  kill -KILL -- "-$pid"
} > /dev/null 2>&1 < /dev/null &
watch=$!
while :; do
  { wait "$pid"; } 2> /dev/null  # without bash's words on how it ended
  code=$?
  kill -0 "$pid" 2> /dev/null || break
done
exec 2> /dev/null
kill -KILL "$watch"
exit "$code"
