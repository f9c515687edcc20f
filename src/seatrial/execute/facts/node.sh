#!/bin/bash
# The facts of this node, one a line: SECTION.NAME<TAB>VALUE. The last line is `end<TAB>LINES`.
#
#   bash ./node.sh                      of this node; job.sh lies beside it
#   bash ./node.sh FOLDER               writes FOLDER/NODE, where NODE is the name of this node
#   SEATRIAL_ROOT=tree bash ./node.sh   of the files in a tree, as they lie below /
#   SEATRIAL_PACKAGES='slurmd' bash ./node.sh   with the versions of these packages
#
# It needs no root, and starts a process only for packages and GPUs: with 12,288 nodes each process
# counts. What cannot be read by this user, or a program that fails, is told as skipped.NAME. Facts of
# the section `now` change by themselves (counters, free memory): they are not compared.
set -u
LC_ALL=C
folder=${1-}
shopt -s nullglob
root=${SEATRIAL_ROOT-}
facts=() # name, value, name, value, ...

fact() {  # section.name, value
  [ -z "$2" ] || facts+=("$1" "${2:0:400}")
}
first() {  # line = the first line of a file; fails if it cannot be read or is empty
  line=
  { IFS= read -r line < "$1"; } 2> /dev/null
  [ -n "$line" ]
}
file() {  # section.name, file; as first and fact, without two calls of functions
  line=
  { IFS= read -r line < "$2"; } 2> /dev/null
  [ -z "$line" ] || facts+=("$1" "${line:0:400}")
}
# Lines are read at once: bash seeks back in the file after each line that `read` takes, and files of
# /proc are made anew for each seek.
lines_of() {  # rows = the lines of a file
  rows=()
  if [ -r "$1" ]; then mapfile -t rows < "$1"; fi
}
skipped() { fact "skipped.$1" "$2"; }
ask() {  # answer = what a program says; fails, with the reason in $answer, if its exit status is not 0
  local status
  answer=$(timeout 20 "$@" 2> /dev/null < /dev/null)
  status=$?
  [ "$status" -ne 0 ] || return 0
  answer="$1 ended with status $status${answer:+: ${answer//$'\n'/; }}"
  [ "$status" -ne 124 ] || answer="$1 did not answer in 20 s"
  return 1
}

seatrial_fact() {  # what job.sh tells of the node
  case $1 in host | toolchain) ;; *) fact "node.${1// /_}" "$2" ;; esac
}

# ---- node: operating system, kernel, CPU, memory, firmware, network, GPUs ------------------
seatrial_of_node() {  # collect.sh puts the text of job.sh in place of the next line
. "${BASH_SOURCE[0]%/*}/job.sh"
}
seatrial_of_node
file node.kernel_build "$root/proc/sys/kernel/version"
file node.command_line "$root/proc/cmdline"
for name in bios_vendor bios_date board_name board_version; do
  file "node.$name" "$root/sys/class/dmi/id/$name"
done
if [ -e "$root/sys/class/dmi/id/product_serial" ] && ! first "$root/sys/class/dmi/id/product_serial"
then skipped serial 'product_serial is for root'; fi

# ---- cpu -----------------------------------------------------------------------------------
cpu=$root/sys/devices/system/cpu
has() {  # whether $flags has all of these
  local each
  for each; do case $flags in *" $each "*) ;; *) return 1 ;; esac; done
}
rows=() # of the first processor
if [ -r "$root/proc/cpuinfo" ]; then mapfile -n 60 -t rows < "$root/proc/cpuinfo"; fi
for row in "${rows[@]}"; do
  value=${row#*:}
  case $row in
    microcode*) fact cpu.microcode "${value# }" ;;
    flags*)
      flags="$value " level=1 # of x86-64, as its psABI has them
      if has cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3; then level=2; fi
      if [ "$level" = 2 ] && has abm avx avx2 bmi1 bmi2 f16c fma movbe xsave; then level=3; fi
      if [ "$level" = 3 ] && has avx512f avx512bw avx512cd avx512dq avx512vl; then level=4; fi
      fact cpu.isa_level "$level"
      break
      ;;
    '') break ;;
  esac
done
file cpu.smt "$cpu/smt/active"
file cpu.governor "$cpu/cpu0/cpufreq/scaling_governor"
file cpu.driver "$cpu/cpu0/cpufreq/scaling_driver"
file cpu.khz_most "$cpu/cpu0/cpufreq/cpuinfo_max_freq"
file cpu.khz_allowed "$cpu/cpu0/cpufreq/scaling_max_freq"
file cpu.boost "$cpu/cpufreq/boost"
file cpu.no_turbo "$cpu/intel_pstate/no_turbo"
file cpu.threads_of_core "$cpu/cpu0/topology/thread_siblings_list"
file cpu.of_socket "$cpu/cpu0/topology/core_siblings_list"
file cpu.numa_domains "$root/sys/devices/system/node/online"
for path in "$cpu"/vulnerabilities/*; do file "cpu.${path##*/}" "$path"; done

# ---- memory and huge pages -----------------------------------------------------------------
total=0 unused=0 available= size=2048 # in KiB; the size of a huge page
lines_of "$root/proc/meminfo"
for row in "${rows[@]}"; do
  value=${row//[!0-9]/}
  case $row in
    MemTotal:*) total=$value; fact memory.total_kib "$value" ;;
    MemFree:*) unused=$value ;;
    MemAvailable:*) available=$value; fact now.memory_available_kib "$value" ;;
    SwapTotal:*) fact memory.swap_kib "$value" ;;
    HugePages_Total:*) fact memory.huge_pages "$value" ;;
    HugePages_Free:*) fact now.huge_pages_free "$value" ;;
    Hugepagesize:*) size=$value; fact memory.huge_page_kib "$value" ;;
  esac
done
# The default of the kernel's command line may be 1 GiB; a job gets transparent pages of this size.
if first "$root/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"; then size=$((line / 1024)); fi
# Free blocks of a huge page and above are huge pages that a job gets at once. /proc/buddyinfo counts
# blocks of 2^order pages; a page is the power of two that makes free memory of these (4 to 64 KiB).
pages=0 blocks=0 page=4 zones=()
lines_of "$root/proc/buddyinfo"
for row in "${rows[@]}"; do
  read -r -a word <<< "$row"
  [ "${word[2]-}" = zone ] || continue
  zones+=("$row")
  for ((order = 0; order + 4 < ${#word[@]}; order++)); do
    pages=$((pages + (${word[order + 4]} << order)))
  done
done
while [ "$page" -lt 64 ] && [ $((unused * 5)) -gt $((page * pages * 7)) ]; do page=$((page * 2)); done
for ((huge = 0; page << huge < size; huge++)); do :; done # the order of a huge page
for row in "${zones[@]}"; do
  read -r -a word <<< "$row"
  for ((order = huge; order + 4 < ${#word[@]}; order++)); do
    blocks=$((blocks + (${word[order + 4]} << (order - huge))))
  done
done
# Huge pages that were set aside (nr_hugepages), of each size, are neither in free blocks nor in
# MemAvailable; those that nobody uses are a job's.
pool=0 # in KiB
for path in "$root"/sys/kernel/mm/hugepages/hugepages-*kB; do
  each=${path##*-}
  if first "$path/free_hugepages"; then pool=$((pool + line * ${each%kB})); fi
done
if [ "${#zones[@]}" -gt 0 ]; then
  fact now.huge_possible "$blocks"
  if [ "$total" -gt 0 ]; then fact now.huge_percent "$(((blocks * size + pool) * 100 / total))"; fi
fi
# What a job can get: the kernel drops page cache and moves pages where a job asks for huge pages, so
# a full page cache takes none away.
if [ "$total" -gt 0 ]; then
  fact now.huge_obtainable_percent "$(((${available:-$((blocks * size))} + pool) * 100 / total))"
fi
for name in enabled defrag; do
  if first "$root/sys/kernel/mm/transparent_hugepage/$name"; then
    line=${line#*[} && fact "memory.thp_$name" "${line%%]*}"
  fi
done

# ---- limits: of a job, soft and hard, as the kernel has them: numbers and bytes ----------------
limit() {  # name, soft, hard
  fact "limit.$1" "$2"
  fact "limit.$1_hard" "$3"
}
set -f # rows are split into words, and no word is a pattern of files
lines_of /proc/self/limits
for row in "${rows[@]}"; do
  case $row in
    "Max open files "*) limit nofile ${row:26} ;;
    "Max processes "*) limit processes ${row:26} ;;
    "Max locked memory "*) limit locked ${row:26} ;;
    "Max stack size "*) limit stack ${row:26} ;;
    "Max core file size "*) limit core ${row:26} ;;
    "Max address space "*) limit virtual ${row:26} ;;
  esac
done

# ---- mounts ----------------------------------------------------------------------------------
shared=() # file systems of servers
lines_of "$root/proc/self/mounts"
for row in "${rows[@]}"; do
  set -- $row
  what=$1 where=$2 kind=$3 how=$4
  case $kind in lustre | nfs | nfs4 | gpfs | beegfs | ceph | dvs | panfs | wekafs) shared+=("$where") ;; esac
  case $kind in
    lustre | nfs | nfs4 | gpfs | beegfs | ceph | fuse.* | dvs | panfs | wekafs | ext[234] | xfs | btrfs | zfs | tmpfs) ;;
    *) continue ;;
  esac
  case $where in
    /run | /run/* | /sys/* | /proc/* | /etc/* | /var/lib/docker/* | /var/spool/slurm*) continue ;;
  esac
  [ "$kind" != tmpfs ] || what=tmpfs
  fact "mount.${where//[[:space:]]/?}" "$kind $what ${how%%,*}"
done
set +f
# Whether a program that is started there, and before it a shell, is told where it is (getcwd). A
# file system that does not answer holds up its own process alone.
failed=
for where in "${shared[@]}"; do
  where=$root${where//\\040/ }
  timeout -k 1 5 bash -c 'cd -P -- "$1" && [ "$(pwd -P)" = "$PWD" ] && [ "$(env pwd -P)" = "$PWD" ]' \
    bash "$where" > /dev/null 2>&1 < /dev/null || failed+="${failed:+ }${where#"$root"}"
done
if [ "${#shared[@]}" -gt 0 ]; then fact now.getcwd_failed "${failed:-none}"; fi

# ---- kernel modules, their parameters; module files ------------------------------------------
for path in "$root"/sys/module/*/version; do
  name=${path%/version}
  file "module.${name##*/}" "$path"
done
for name in lnet ko2iblnd ksocklnd kkfilnd kgnilnd ptlrpc obdclass; do
  for path in "$root/sys/module/$name/parameters/"*; do
    if [ -r "$path" ]; then file "$name.${path##*/}" "$path"; else skipped "${name}_${path##*/}" 'for root'; fi
  done
done
for name in version timeout health_check jobid_var; do file "lustre.$name" "$root/sys/fs/lustre/$name"; done
if [ -e "$root/sys/kernel/debug" ] && [ ! -r "$root/sys/kernel/debug/lnet/routes" ]; then
  skipped lnet_routes '/sys/kernel/debug is for root'
elif [ -r "$root/sys/kernel/debug/lnet/routes" ]; then
  while read -r net hops priority state gateway _; do
    case $gateway in *@*) ;; *) continue ;; esac # two lines are titles
    case $hops in -1 | 4294967295) hops=1 ;; esac # none was given
    case $priority in 0) priority= ;; *) priority=" priority $priority" ;; esac
    fact "route.$net.$gateway" "$state $hops$priority"
  done < "$root/sys/kernel/debug/lnet/routes"
fi
fact environment.modules "${LOADEDMODULES-}"
IFS=: read -r -a folders <<< "${MODULEPATH-}"
for each in "${folders[@]}"; do
  for path in "$root$each"/*/.version "$root$each"/*/.modulerc "$root$each"/*/.modulerc.lua; do
    name=${path%/*}
    while read -r word key value _; do
      case $word$key in
        setModulesVersion) ;;
        module-version*) case $value in default) value=$key ;; *) continue ;; esac ;;
        'module_version("'*) value=${word#*'("'}$key ;;
        *) continue ;;
      esac
      fact "default.${name##*/}" "${value//[\"{\}]/}"
    done 2> /dev/null < "$path"
  done
done

# ---- settings of the kernel --------------------------------------------------------------------
for name in vm/swappiness vm/overcommit_memory vm/overcommit_ratio vm/zone_reclaim_mode vm/min_free_kbytes \
  vm/nr_hugepages vm/dirty_ratio vm/max_map_count kernel/numa_balancing kernel/pid_max kernel/threads-max \
  kernel/core_pattern kernel/perf_event_paranoid kernel/yama/ptrace_scope kernel/watchdog kernel/nmi_watchdog \
  kernel/randomize_va_space net/core/rmem_max net/core/wmem_max net/core/somaxconn net/ipv4/tcp_rmem \
  net/ipv4/tcp_wmem net/ipv4/tcp_congestion_control fs/file-max; do
  key=${name//\//_}
  file "sysctl.${key//-/_}" "$root/proc/sys/$name"
done

# ---- PCI: devices for storage, networks, displays and accelerators; width and speed, and their most
narrow= slow= devices=0
for path in "$root"/sys/bus/pci/devices/*; do
  first "$path/class" || continue
  case $line in 0x01* | 0x02* | 0x03* | 0x12*) class=${line:2:4} ;; *) continue ;; esac
  first "$path/max_link_width" || continue
  width_most=$line
  first "$path/current_link_width" || continue
  width=$line
  first "$path/max_link_speed"; speed_most=${line%% *}
  first "$path/current_link_speed"; speed=${line%% *}
  first "$path/vendor"; id=${line#0x}
  first "$path/device"; id+=:${line#0x}
  where=${path##*/}
  devices=$((devices + 1))
  fact "pci.$where" "$class $id x$width of x$width_most"
  fact "now.pci_speed_$where" "$speed of $speed_most"
  case $width_most in 0 | 255) continue ;; esac  # the device does not tell
  [ "$width" = "$width_most" ] || narrow+="${narrow:+ }$where"
  [ "$speed" = "$speed_most" ] || case $class in 02*) slow+="${slow:+ }$where" ;; esac
done
fact pci.devices "$devices"
fact pci.narrow "${narrow:-none}"
fact pci.slow_network "${slow:-none}"

# ---- errors of memory and machine ---------------------------------------------------------------
corrected=0 uncorrected=0 controllers=0
for path in "$root"/sys/devices/system/edac/mc/mc[0-9]*; do
  controllers=$((controllers + 1))
  if first "$path/ce_count"; then corrected=$((corrected + line)); fi
  if first "$path/ue_count"; then uncorrected=$((uncorrected + line)); fi
done
fact edac.controllers "$controllers"
if [ "$controllers" -gt 0 ]; then
  fact now.edac_corrected "$corrected"
  fact now.edac_uncorrected "$uncorrected"
fi
lines_of "$root/proc/interrupts"
for row in "${rows[@]}"; do
  case $row in
    *MCE:*)
      checks=0
      for value in ${row#*MCE:}; do # a number for each CPU, then words
        case $value in *[!0-9]*) break ;; esac
        checks=$((checks + value))
      done
      fact now.machine_checks "$checks"
      ;;
  esac
done

# ---- networks -------------------------------------------------------------------------------------
for path in "$root"/sys/class/infiniband/*; do
  device=${path##*/}
  file "ib.$device.firmware" "$path/fw_ver"
  file "ib.$device.board" "$path/board_id"
  for port in "$path"/ports/*; do
    own=ib.$device.${port##*/}
    if first "$port/state"; then fact "$own.state" "${line#*: }"; fi
    if first "$port/phys_state"; then fact "$own.phys_state" "${line#*: }"; fi
    file "$own.rate" "$port/rate"
    for name in symbol_error link_error_recovery link_downed port_rcv_errors local_link_integrity_errors \
      excessive_buffer_overrun_errors port_xmit_discards; do
      file "now.ib_${device}_${port##*/}_$name" "$port/counters/$name"
    done
  done
done
for path in "$root"/sys/class/net/*; do
  name=${path##*/}
  [ -e "$path/device" ] || continue
  file "net.$name.mtu" "$path/mtu"
  file "net.$name.state" "$path/operstate"
  file "net.$name.speed" "$path/speed"
done
# The networks that devices are on, with their netmasks, as the kernel routes to them.
hex() {  # ip = the address of eight hexadecimal digits, lowest byte first
  ip=$((16#${1:6:2})).$((16#${1:4:2})).$((16#${1:2:2})).$((16#${1:0:2}))
}
declare -A networks=()
lines_of "$root/proc/net/route"
for row in "${rows[@]:1}"; do
  read -r name net gateway _ _ _ _ mask _ <<< "$row"
  [ "$gateway" = 00000000 ] && [ "${#mask}" = 8 ] && [ "$mask" != 00000000 ] || continue
  case $name in lo | docker* | veth* | br-* | virbr*) continue ;; esac
  hex "$net"; net=$ip
  hex "$mask"
  networks[$name]+="${networks[$name]:+ }$net/$ip"
done
for name in "${!networks[@]}"; do fact "network.$name" "${networks[$name]}"; done

# ---- clocks ----------------------------------------------------------------------------------------
file clock.source "$root/sys/devices/system/clocksource/clocksource0/current_clocksource"
fact now.clock_s "${EPOCHREALTIME-${EPOCHSECONDS-}}"
if first "$root/proc/uptime"; then fact now.uptime_s "${line%%.*}"; fi
if first "$root/proc/loadavg"; then fact now.load "${line%% *}"; fi

# ---- stuck processes: in state D, which no signal ends, at two looks ------------------------------
# The load counts processes that run and those in state D. So most nodes need no look: the load of
# the last minute is about the number of processes that run now, without this one. Kernel threads may
# be in state D by design: they have no memory (field 23, the size).
waiting() {  # stuck = the stat files, of those given, of processes in state D
  local file found text
  stuck=()
  mapfile -t found < <(grep -lsE '^[0-9]+ [(].*[)] D ' "$@" < /dev/null)
  for file in "${found[@]}"; do
    if first "$file"; then
      read -r -a text <<< "${line##*) }"
      [ "${text[20]-0}" = 0 ] || stuck+=("$file")
    fi
  done
}
read -r load _ _ running _ <<< "${line:-0.00 0 0 1/1}"
load=${load/./} running=${running%%/*} # hundredths
stuck=()
if [ $((10#${load:-0} - (${running:-1} - 1) * 100)) -ge 50 ]; then
  waiting "$root"/proc/[0-9]*/stat
  if [ "${#stuck[@]}" -gt 0 ]; then
    read -r -t 0.3 _ <> <(:)
    waiting "${stuck[@]}"
  fi
fi
fact now.stuck_processes "${#stuck[@]}"
names=
for file in "${stuck[@]}"; do
  first "$file" && name=${line#*(} && names+="${names:+ }${line%% *}:${name%)*}"
done
fact now.stuck "$names"

# ---- GPUs: what the driver says --------------------------------------------------------------------
if [ -z "$root" ] && command -v nvidia-smi > /dev/null; then # it writes its errors to stdout
  if ask nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,vbios_version,memory.total,ecc.mode.current
  then
    number=0 other=
    while IFS= read -r line; do
      case $line in
        *,*,*,*,*) fact "gpu.$number" "$line"; number=$((number + 1)) ;;
        ?*) other+="${other:+; }$line" ;;
      esac
    done <<< "$answer"
    if [ -z "$other" ]; then fact gpu.count "$number"; else skipped gpu "nvidia-smi: $other"; fi
  elif [[ $answer == *'No devices were found'* ]]; then
    fact gpu.count 0
  else
    skipped gpu "$answer"
  fi
fi

# ---- packages: a digest of all, the versions of some ----------------------------------------------
if [ -r "$root/var/lib/dpkg/status" ]; then # sorted by name, so equal packages are equal bytes
  sum=$(cksum < "$root/var/lib/dpkg/status") # CRC and size; SHA-256 takes three times as long
  fact package.digest "$sum"
  for name in ${SEATRIAL_PACKAGES-}; do # one that was removed may have a version, too
    if ask dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$name" && [[ $answer == 'installed '* ]]
    then
      answer=${answer%%$'\n'*}
      fact "package.$name" "${answer#installed }"
    fi
  done
elif [ -z "$root" ] && command -v rpm > /dev/null; then
  if ask rpm -qa --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n'; then
    sum=$(sort <<< "$answer" | sha256sum)
    fact package.digest "${sum:0:16}"
  else
    skipped packages "$answer"
  fi
  for name in ${SEATRIAL_PACKAGES-}; do # of one that is not installed it says so on stdout
    if ask rpm -q --queryformat '%{VERSION}-%{RELEASE}' "$name"; then fact "package.$name" "$answer"; fi
  done
else
  skipped packages 'neither dpkg nor rpm is here'
fi
printf -v out '%s\t%s\n' "${facts[@]//[[:cntrl:]]/ }" end "$((${#facts[@]} / 2))"
if [ -z "$folder" ]; then
  printf '%s' "$out"
else
  first /proc/sys/kernel/hostname
  name=${SLURMD_NODENAME:-$line}
  set -C # who answers twice does not replace its first answer
  { printf '%s' "$out" > "$folder/$name"; } 2> /dev/null || printf '%s' "$out" > "$folder/$name+$$"
fi
