#!/bin/bash
# Runs commands on the places of a job, each on the next place that is free, by rsh.
#
#   farm.sh PLACES COMMANDS
#
# PLACES has a host a line, as often as it takes a command at a time ($NODEFILE). COMMANDS has a
# command a line; $PLACE in it is the line of its host in PLACES, from 0 on. What the n-th command
# prints goes to farm.n, what it says on stderr to farm.n.err.
# Prints a line for each command: its number, host, exit code; of one that failed, on stderr, the last
# line of its own stderr, and of the first that failed the end of it, where causes are sought. Exits 1
# if one failed.
set -u
mapfile -t places < "$1"
mapfile -t commands < "$2"
shell=${RSH:-rsh}
exec {ended}<> <(:)  # a pipe: who ends writes its place and number

start() {  # place, number of the command
  local host=${places[$1]} line
  printf -v line 'cd %q && PLACE=%s && { %s\n}' "$PWD" "$1" "${commands[$2]}"
  {
    "$shell" "$host" "$line" < /dev/null > "farm.$2" 2> "farm.$2.err"
    echo "$1 $2 $?" >&"$ended"
  } &
}

next=0 running=0 failed=0
for place in "${!places[@]}"; do
  [ "$next" -lt "${#commands[@]}" ] || break
  start "$place" "$next"
  next=$((next + 1)) running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  read -r -u "$ended" place number code
  running=$((running - 1))
  echo "command $number on ${places[place]}: exit code $code"
  if [ "$code" -ne 0 ]; then
    failed=$((failed + 1))
    [ "$failed" -gt 1 ] || tail -n 20 "farm.$number.err" >&2
    said=$(grep '[[:alnum:]]' "farm.$number.err" | tail -n 1)
    echo "seatrial: command $number on ${places[place]} failed with exit code $code: ${commands[number]}${said:+: ${said:0:200}}" >&2
  fi
  if [ "$next" -lt "${#commands[@]}" ]; then
    start "$place" "$next"
    next=$((next + 1)) running=$((running + 1))
  fi
done
echo "$((${#commands[@]} - failed)) of ${#commands[@]} commands ended well"
[ "$failed" -eq 0 ]
