# A Grid Engine of Debian in network, mount, host-name and process namespaces of its own.
#
#   unshare --net --mount --uts --pid --fork --mount-proc --kill-child \
#     env -i bash server.sh FOLDER serve NODES SLOTS
#   nsenter ... bash server.sh FOLDER node 3          # start the daemon of n003
#
# FOLDER gets all files. Each node is a host: it has a network, an address and a name. Where there
# is no name server and no route to one, questions to it fail at once.
set -eu
folder=$1 act=$2 network=10.98.0
export PATH=/usr/lib/gridengine:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/
export LD_LIBRARY_PATH=/usr/lib/gridengine # of spooldefaults.bin
export SGE_ROOT=$folder/root SGE_CELL=default SGE_ND=1
export SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445
resources=/usr/share/gridengine/util/resources

name_of() { printf 'n%03d' "$1"; }

make_root() {
  local common=$SGE_ROOT/$SGE_CELL/common part
  mkdir -p "$SGE_ROOT"/{bin,lib,utilbin} "$common" "$folder/spool/qmaster"
  for part in bin lib utilbin; do ln -s /usr/lib/gridengine "$SGE_ROOT/$part/lx-amd64"; done
  ln -s /usr/share/gridengine/util "$SGE_ROOT/util"
  echo gridengine > "$common/act_qmaster"
  cat > "$common/bootstrap" << END
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params $common;$folder/spool/qmaster
binary_path /usr/lib/gridengine
qmaster_spool_dir $folder/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
END
  # Root may have jobs, and shells are none of a login: they start sooner without its profile.
  sed -e "s#^execd_spool_dir .*#execd_spool_dir $folder/spool#" \
    -e 's/^\(min_[ug]id\) .*/\1 0/' -e 's/^\(mailer\|administrator_mail\) .*/\1 none/' \
    -e 's/^shell_start_mode .*/shell_start_mode unix_behavior/' \
    -e 's/^login_shells .*/login_shells sh/' -e 's/^max_unheard .*/max_unheard 00:00:05/' \
    -e 's/^load_report_time .*/load_report_time 00:00:01/' \
    -e 's/flush_time=[0-9:]*/flush_time=00:00:15 accounting_flush_time=00:00:00/' \
    /usr/share/gridengine/default-configuration > "$folder/configuration"
  cp -r "$resources/centry" "$folder/centry"
  printf '%s\n' 'name exclusive' 'shortcut excl' 'type BOOL' 'relop EXCL' 'requestable YES' \
    'consumable YES' 'default 0' 'urgency 1000' > "$folder/centry/exclusive"
  spoolinit classic libspoolc "$common;$folder/spool/qmaster" init
  spooldefaults.bin configuration "$folder/configuration"
  spooldefaults.bin complexes "$folder/centry"
  spooldefaults.bin usersets "$resources/usersets"
  spooldefaults.bin managers root
}

start_network() {
  local i
  hostname gridengine
  ip link set lo up
  # With an address of its own: else the bridge takes that of a port, and another when a port goes.
  ip link add br0 address 02:00:00:00:00:01 type bridge
  ip addr add $network.254/24 dev br0
  ip link set br0 up
  { printf '127.0.0.1 localhost\n%s.254 gridengine\n' $network
    for ((i = 1; i <= nodes; i++)); do printf '%s.%d %s\n' $network "$i" "$(name_of "$i")"; done
  } > "$folder/hosts"
  mount --bind "$folder/hosts" /etc/hosts
}

start_master() {
  setsid sge_qmaster >> "$folder/master.log" 2>&1 < /dev/null &
  until qconf -sconf > /dev/null 2>&1; do sleep 0.05; done
}

describe() { # the hosts, the queue and its parallel environments
  local i names= each
  for ((i = 1; i <= nodes; i++)); do names+=" $(name_of "$i")"; done
  qconf -ah gridengine,${names// /,}
  qconf -as gridengine,${names// /,}
  for each in $names; do
    printf '%s\n' "hostname $each" 'load_scaling NONE' 'complex_values exclusive=true' \
      'user_lists NONE' 'xuser_lists NONE' 'projects NONE' 'xprojects NONE' 'usage_scaling NONE' \
      'report_variables NONE' > "$folder/described"
    qconf -Ae "$folder/described"
  done
  for each in 'smp $pe_slots' 'one 1' 'two 2' 'mpi $fill_up'; do
    sed -e "s/^pe_name .*/pe_name ${each% *}/" -e "s/^allocation_rule .*/allocation_rule ${each#* }/" \
      -e /^#/d "$resources/pe/mpi" > "$folder/described"
    qconf -Ap "$folder/described"
  done
  qconf -sq | sed -e "s/^hostlist .*/hostlist$names/" -e 's/^qname .*/qname all.q/' \
    -e "s/^slots .*/slots $slots/" -e 's/^pe_list .*/pe_list smp one two mpi/' \
    -e 's/^load_thresholds .*/load_thresholds NONE/' > "$folder/described"
  qconf -Aq "$folder/described"
  sed -e 's/^schedule_interval .*/schedule_interval 0:0:1/' \
    -e 's/^\(flush_[a-z]*_sec\) .*/\1 1/' \
    /usr/share/gridengine/util/install_modules/inst_schedd_high.conf > "$folder/described"
  qconf -Msconf "$folder/described"
}

start_node() {
  local number=$1 name
  name=$(name_of "$number")
  rm -f "$folder/go-$name"
  mkfifo "$folder/go-$name"
  setsid unshare --net --uts bash -c '
    hostname "$1"
    read -r _ < "$2"
    ip link set lo up
    ip addr add "$3" dev "$4"
    ip link set "$4" up
    exec sge_execd
  ' bash "$name" "$folder/go-$name" "$network.$number/24" "e$number" \
    >> "$folder/$name.log" 2>&1 < /dev/null &
  local node=$!
  ip link del "h$number" 2> /dev/null || true # of an earlier daemon whose jobs still run
  ip link add "h$number" type veth peer name "e$number"
  ip link set "h$number" master br0 up
  until [ -e "/proc/$node/ns/net" ] && ! [ "/proc/$node/ns/net" -ef /proc/self/ns/net ]; do
    sleep 0.01
  done
  ip link set "e$number" netns "$node"
  echo > "$folder/go-$name"
}

kill_node() { # with its jobs, which are in its network
  local space process
  space=$(readlink "/proc/$(< "$folder/spool/$(name_of "$1")/execd.pid")/ns/net")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net")" != "$space" ] || kill -KILL "${process#/proc/}"
  done
}

case $act in
  serve)
    nodes=$3 slots=$4
    make_root
    start_network
    start_master
    describe
    for ((number = 1; number <= nodes; number++)); do start_node "$number"; done
    sleep infinity & # beside it other commands run; this shell takes in processes without a parent
    echo GRIDENGINE_IS_UP
    wait
    ;;
  master) start_master ;;
  node) start_node "$3" ;;
  kill-node) kill_node "$3" ;;
esac
