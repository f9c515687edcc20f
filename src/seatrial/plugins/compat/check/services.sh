# What a node must have for applications that expect a Linux host.
#
#   bash services.sh PROGRAM FOLDER X11      PROGRAM: services.c, compiled; FOLDER: for scratch, /tmp;
#                                            X11: needed, or optional
#
# Prints a line for each service: `ok NAME WHAT`, `note NAME WHAT` for what few need, `FAILED NAME
# WHY`. Exits 1 if one failed.
set -u
program=$1 scratch=$2 x11=$3
failed=0
read -r here < /proc/sys/kernel/hostname

ok() { echo "ok $1 ${*:2}"; }
note() { echo "note $1 ${*:2}"; }
bad() {
  echo "FAILED $1 ${*:2}"
  failed=1
}

writable() {  # name, folder: files can be made, read and run there
  local file=$2/.seatrial.$$.$RANDOM
  if [ ! -d "$2" ]; then
    bad "$1" "$2 is not there"
  elif ! { printf '#!/bin/sh\necho here\n' > "$file"; } 2> /dev/null; then
    bad "$1" "$2 cannot be written"
  elif ! chmod +x "$file" || [ "$("$file" 2> /dev/null)" != here ]; then
    bad "$1" "$2: programs cannot be run there (noexec)"
  else
    ok "$1" "$2"
  fi
  rm -f "$file"
}

limit() {  # name, letter of ulimit, least
  local value
  value=$(ulimit -S"$2")
  if [ "$value" = unlimited ] || [ "$value" -ge "$3" ]; then
    ok "$1" "$value"
  else
    bad "$1" "$value, and at least $3 are needed (ulimit -$2)"
  fi
}

own() {  # service: one of the program
  local said
  if said=$("$program" "$1" 2>&1); then ok "$1" "$said"; else bad "$1" "$said"; fi
}

if ! getent passwd "$(id -u)" > /dev/null 2>&1; then
  bad getent "getent passwd $(id -u) finds nobody"
else
  ok getent "$(getent passwd "$(id -u)" | cut -d: -f1)"
fi
if address=$(getent hosts "$here" 2> /dev/null); then
  ok names "${address%%[[:space:]]*} $here"
else
  bad names "getent hosts $here finds no address"
fi
writable home "${HOME:-(HOME is not set)}"
writable tmp "$scratch"
writable shm /dev/shm
limit files n 1024
limit stack s 8192
limit processes u 512
said=$(LC_ALL=${LC_ALL:-${LANG:-C}} bash -c : 2>&1)
if [ -z "$said" ]; then ok locale "${LC_ALL:-${LANG:-C}}"; else bad locale "$said"; fi
if xauth -V > /dev/null 2>&1; then
  ok xauth "$(command -v xauth)"
elif [ "$x11" = needed ]; then
  bad xauth "there is no xauth: no window of this node can be shown"
else
  note xauth "there is none: no window of this node can be shown"
fi
own fork
own dlopen
own sockets
exit "$failed"
