# Collects the facts of nodes into facts.txt; sourced by the tests of this folder, in a run directory.
#
#   seatrial_collect job         one task on each node of the job, or this host
#   seatrial_collect ssh FILE    each host that a line of the file names, by ssh; at most 64 at a time
#
# facts.txt has a line `node<TAB>NAME` for each node that answered, its facts, and `end<TAB>LINES`;
# `silent<TAB>NAME` for one that did not, and `again<TAB>NAME` for one that answered twice. A node is
# named by the file that it wrote, so no node speaks for another.

seatrial_collect() {
  local LC_ALL=C here=$SEATRIAL_TEST/.. each
  export patience SEATRIAL_PACKAGES=$packages
  mkdir answers || return 1
  sed -e "/^\. .*job\.sh\"\$/{r $here/job.sh" -e 'd}' "$here/node.sh" > node.sh || return 1
  case $1 in
    job)
      cut -d ' ' -f 1 "$HOSTFILE" > asked
      if [ -n "${SLURM_JOB_ID-}" ]; then
        timeout -k 5 "$patience" srun --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 \
          --cpu-bind=none --kill-on-bad-exit=0 --wait=0 bash "$PWD/node.sh" "$PWD/answers" < /dev/null
      else
        read -r each < /proc/sys/kernel/hostname
        echo "$each" > asked
        timeout -k 5 "$patience" bash node.sh answers < /dev/null
      fi
      ;;
    ssh)
      cp -- "$2" asked || return 1
      # xargs ends where a command exits with 255, as ssh does for a host that it does not reach.
      xargs -P 64 -I '{}' bash -c 'timeout -k 5 "$patience" ssh -o BatchMode=yes -o ConnectTimeout=10 \
        -- "$1" "SEATRIAL_PACKAGES=\"$SEATRIAL_PACKAGES\" bash -s" < node.sh > "answers/$1" 2>> errors || exit 1' bash '{}' < asked
      ;;
  esac
  seatrial_merge
}

seatrial_merge() {
  local file reason= found=()
  if [ -s errors ]; then
    cat errors >&2
    while IFS= read -r file; do [ -z "$file" ] || reason=$file; done < errors
  fi
  for file in answers/*; do found+=("$file"); done
  awk -F '\t' -v facts=facts.txt -v reason="${reason//\\/ }" '
    FILENAME == "asked" { asked[++number] = $1; next }
    FNR == 1 {
      name = substr(FILENAME, 9)
      lines = 0
      if (index(name, "+")) { sub(/[+].*/, "", name); print "again\t" name > facts; nextfile }
      print "node\t" name > facts
      seen[name] = 1
    }
    /^[a-z0-9_]+\.[^\t]+\t/ || /^end\t/ { if (++lines <= 5000) print substr($0, 1, 600) > facts }
    END {
      for (i = 1; i <= number; i++) {
        if (seen[asked[i]]) answered++
        else {
          print "silent\t" asked[i] > facts
          printf "%s did not answer\n", asked[i]
          if (++silent <= 20) names = names (silent > 1 ? ", " : "") asked[i]
        }
      }
      printf "%d of %d nodes answered\n", answered, number
      if (answered) exit
      if (silent > 20) names = names " and " silent - 20 " more"
      printf "no answer from %s%s\n", names, (reason ? "; " reason : "") > "/dev/stderr"
      exit 1
    }' asked "${found[@]}" && rm -r answers
}
