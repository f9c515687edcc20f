# A drill, from the directory of its run: probes watch; when all has gone well for a while the act is
# done; when all goes well again it is undone; when all goes well again the load is told to end.
# drill.log has a line for each thing that happens, in the order in which it does:
#
#   TIME begin TASKS EVERY SLOW ACT_LIMIT        all times are us, TIME since the epoch
#   TIME probe NAME begin            an operation of a probe begins
#   TIME probe NAME end CODE         and has ended
#   TIME act begin | TIME act end CODE          124, 137 after ACT_LIMIT: ended, as it hung
#   TIME undo begin | TIME undo end CODE
#   TIME end REASON                  done, or why not
#   TIME load RANK OPERATIONS LONGEST_US AT_US LOST         by the load, as it ends
set -u
export LC_ALL=C
here=${BASH_SOURCE[0]%/*}
log=$DRILL_LOG

clock() { now=${EPOCHREALTIME/[.,]/}; }
tell() {
  clock
  printf '%s %s\n' "$now" "$*" >> "$log"
}
pause() { # us
  [ "$1" -le 0 ] || sleep "$(($1 / 1000000)).$(printf %06d $(($1 % 1000000)))"
}

watch() { # name: looks again and again until it is killed
  local began
  while :; do
    tell "probe $1 begin"
    began=$now
    bash "$here/watch/$1" < /dev/null > /dev/null 2>&1
    tell "probe $1 end $?"
    pause $((every - now + began))
  done
}

# Whether each probe has had a good operation since a time (us), none that was bad for `quiet`, and
# none that has been under way for longer than `slow`.
all_well() { # since quiet
  clock
  awk -v now="$now" -v since="$1" -v quiet="$2" -v slow="$slow" '
    $2 != "probe" { next }
    $4 == "begin" { begun[$3] = $1; names[$3] = 1; next }
    $5 != 0 || $1 - begun[$3] > slow { bad[$3] = $1 }
    $5 == 0 { if (begun[$3] >= since) good[$3] = $1 }
    $4 == "end" { delete begun[$3] }
    END {
      for (name in names) {
        if (!(name in good) || (name in bad && now - bad[name] < quiet)) exit 1
        if (name in begun && now - begun[name] > slow) exit 1
        any = 1
      }
      exit !any
    }' "$log"
}

await_all_well() { # since quiet limit: fails after the limit
  local until
  clock
  until=$((now + $3))
  while [ "$now" -lt "$until" ]; do
    [ $((now - $1)) -lt "$2" ] || ! all_well "$1" "$2" || return 0
    pause 200000
    clock
  done
  return 1
}

do_within_limit() { # act or undo, in a session of its own, so that all that it starts is ended
  tell "$1 begin"
  setsid timeout -k 5 "$act_limit" bash "$here/$1" < /dev/null &
  acting=$!
  wait "$acting"
  tell "$1 end $?"
  acting=
}

state=before acting=
undo_once() {
  [ "$state" = acted ] || return 0
  state=undone
  do_within_limit undo
}

finish() { # reason
  trap '' TERM INT HUP
  [ -z "$acting" ] || kill -KILL -- "-$acting"
  undo_once
  tell "end $1"
  : > "$DRILL_STOP"
  kill "${watchers[@]}" 2> /dev/null
  exit 0
}

# After a drill that was killed: its way back, when what is left of its act has been ended.
go_back() {
  local begun
  watchers=()
  begun=$(awk '$2 == "act" && $3 == "begin" { print $1 }' "$log")
  if [ -n "$begun" ] && ! grep -q ' undo end ' "$log"; then
    state=acted
    clock
    grep -q ' act end ' "$log" || pause $((begun + (${act_limit%.*} + 6) * 1000000 - now))
  fi
  finish killed
}
[ "${1-}" != back ] || go_back

trap 'finish cancelled' TERM INT HUP

: > "$log" || exit 1
tell "begin ${TASKS:-1} $every $slow ${act_limit%.*}000000"
started=$now
watchers=()
for file in "$here"/watch/*; do
  watch "${file##*/}" &
  watchers+=("$!")
done
await_all_well "$started" "$before" $((2 * before)) || finish "not well before the act"
[ ! -e drill.load_ended ] || finish "the load ended before the act"
[ $((WALLTIME * 1000000 - now + started)) -gt $((longest - 2 * before)) ] ||
  finish "too little walltime for the way back"
state=acted
do_within_limit act
await_all_well "$now" "$quiet" "$give_up" || gave_up=1
undo_once
await_all_well "$now" "$quiet" "$give_up" || finish "not well after the way back"
[ -z "${gave_up-}" ] || finish "not well before the way back"
finish done
