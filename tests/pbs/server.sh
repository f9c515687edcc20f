# An OpenPBS of eight vnodes in network, mount, host-name and process namespaces of its own.
#
#   unshare --net --mount --uts --pid --fork --mount-proc --kill-child \
#     bash server.sh PBS_EXEC NODES CORES COMMAND...
#
# Starts the server, its scheduler and one MOM with NODES vnodes n001, n002, ..., then becomes COMMAND. PBS keeps
# its files below /tmp, where no ordinary user may write by then, and reads its configuration in /etc:
# here that is a copy of the host's, so nothing of the host is changed.
set -eu
PBS_EXEC=$1 nodes=$2 cores=$3
shift 3
home=/tmp/pbs/home
export PATH=$PBS_EXEC/bin:$PBS_EXEC/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
cd /

hostname pbs
ip link set lo up
ip addr add 10.99.0.1/24 dev lo
mkdir -p /tmp/pbs
cp -a /etc /tmp/pbs/etc
mount --bind /tmp/pbs/etc /etc
printf '%s\n' '127.0.0.1 localhost' '10.99.0.1 pbs' > /etc/hosts
: > /etc/resolv.conf
printf '%s\n' "PBS_EXEC=$PBS_EXEC" "PBS_HOME=$home" PBS_SERVER=pbs PBS_START_SERVER=1 \
  PBS_START_SCHED=1 PBS_START_COMM=1 PBS_START_MOM=1 PBS_SCP=/bin/false > /etc/pbs.conf
"$PBS_EXEC/libexec/pbs_habitat"

printf '%s\n' '$clienthost pbs' '$usecp *:/ /' > "$home/mom_priv/config"
{
  printf '%s\n' '$configversion 2' 'pbs: resources_available.ncpus = 0' \
    'pbs: resources_available.mem = 0'
  for name in $(printf 'n%03d ' $(seq "$nodes")); do
    printf "$name: %s\n" "resources_available.ncpus = $cores" 'resources_available.mem = 2gb' \
      "resources_available.host = $name"
  done
} > /tmp/pbs/vnodes
pbs_mom -s insert vnodes /tmp/pbs/vnodes
"$PBS_EXEC/libexec/pbs_init.d" start
qmgr << 'END'
set server job_history_enable = True
set server acl_roots = root
set server flatuid = True
set server scheduler_iteration = 30
END
until pbsnodes "$(printf 'n%03d' "$nodes")" 2> /dev/null | grep -q 'state = free'; do sleep 0.2; done
exec "$@"
