# The hosts of a run, in the forms in which MPI launchers and other programs want them. A line above
# sets _list (the hosts as Slurm writes them, n[01-02,7],k1), _nodes, _tasks and _per_node.
#
# No process is started: a run on two nodes begins less than a millisecond later.

seatrial_unfold() {  # adds the hosts of a list to _hosts
  local LC_ALL=C rest=$1 item part
  while [ -n "$rest" ]; do
    item=
    while :; do  # up to a comma that is not in brackets
      part=${rest%%[[,]*}
      item+=$part rest=${rest:${#part}}
      [ "${rest:0:1}" = '[' ] || break
      part=${rest%%]*}]
      item+=$part rest=${rest:${#part}}
    done
    rest=${rest#,}
    seatrial_unfold_name "$item"
  done
}
seatrial_unfold_name() {  # adds the hosts of one name with brackets to _hosts
  local head=${1%%[[]*} tail range low high number
  [ "$head" != "$1" ] || { _hosts+=("$1"); return; }
  tail=${1#*]}
  range=${1#*[}
  range=${range%%]*}
  local IFS=,
  for range in $range; do
    low=${range%-*} high=${range#*-}
    for ((number = 10#$low; number <= 10#$high; number++)); do
      printf -v part '%s%0*d%s' "$head" "${#low}" "$number" "$tail"
      case $tail in *'['*) seatrial_unfold_name "$part" ;; *) _hosts+=("$part") ;; esac
    done
  done
}

# The first nodes are full, as launchers fill them; each has a task, if there are enough.
seatrial_host_files() {  # _placed = how many tasks have a place
  local LC_ALL=C part host after=$_nodes left=$_tasks number slots=() places=() lines=()
  for host in "${_hosts[@]:0:_nodes}"; do
    after=$((after - 1))
    number=$((left - after))
    [ "$number" -le "$_per_node" ] || number=$_per_node
    [ "$number" -ge 1 ] || number=$((left > 0))
    [ "$number" -gt 0 ] || break
    left=$((left - number))
    slots+=("$host slots=$number")
    places+=("$host:$number")
    printf -v part '%*s' "$number" ''
    part=${part// /"$host"$'\n'}
    lines+=("${part%$'\n'}")
  done
  _placed=$((_tasks - left))
  printf '%s\n' "${slots[@]}" >| "$_run/job.hostfile"
  printf '%s\n' "${places[@]}" >| "$_run/job.machinefile"
  [ ! -e "$_run/job.order" ] || seatrial_hosts_of_ranks
  printf '%s\n' "${lines[@]}" >| "$_run/job.nodefile"
}
seatrial_hosts_of_ranks() {  # with an order, lines has the host of each rank
  local ranks rank node=0
  lines=()
  while IFS=, read -r -a ranks; do
    for rank in "${ranks[@]}"; do lines[rank]=${_hosts[node]-}; done
    node=$((node + 1))
  done < "$_run/job.order"
}
_hosts=()
seatrial_unfold "$_list"
seatrial_host_files
