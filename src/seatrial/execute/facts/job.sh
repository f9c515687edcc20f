# What the machine is, as a job found it; sourced by the first job of each toolchain on each node.
# It sets _said to members of a JSON object, of texts. $CC and the others are those of the toolchain.
# node.sh uses it, too, for the facts of a node alone, with a seatrial_fact of its own; SEATRIAL_ROOT
# is then the folder in which the files of the node are.

declare -F seatrial_fact > /dev/null || seatrial_fact() {  # name, text
  [ -n "$2" ] || return 0
  seatrial_json "${2:0:200}"
  _said+="${_said:+,}\"$1\":\"$_text\""
}
seatrial_file() {  # name, file: the file's first line
  _line=
  [ -r "$2" ] && IFS= read -r _line < "$2"
  seatrial_fact "$1" "$_line"
}
seatrial_version() {  # name, program: what it says of its version (machine/version.sh)
  command -v "${2%% *}" > /dev/null 2>&1 || return 0
  seatrial_said_version "$2" || _line="not known"
  seatrial_fact "$1" "$_line"
}

seatrial_fact host "$HOSTNAME"
seatrial_fact toolchain "${TOOLCHAIN-}"
if [ -r "${SEATRIAL_ROOT-}/etc/os-release" ]; then
  while IFS== read -r _name _value; do
    [ "$_name" = PRETTY_NAME ] && seatrial_fact os "${_value//\"/}"
  done < "${SEATRIAL_ROOT-}/etc/os-release"
fi
seatrial_file kernel "${SEATRIAL_ROOT-}/proc/sys/kernel/osrelease"
seatrial_fact architecture "$HOSTTYPE"
_found=
if [ -r "${SEATRIAL_ROOT-}/proc/cpuinfo" ]; then
  while IFS=: read -r _name _value; do
    case $_name in "model name"*) _found=${_value# }; break ;; esac
  done < "${SEATRIAL_ROOT-}/proc/cpuinfo"
fi
seatrial_fact cpu "$_found"
seatrial_file processors "${SEATRIAL_ROOT-}/sys/devices/system/cpu/online"
if [ -r "${SEATRIAL_ROOT-}/proc/meminfo" ]; then
  read -r _name _value _ < "${SEATRIAL_ROOT-}/proc/meminfo"
  _value=$((_value * 10 / 1048576))
  seatrial_fact memory "$((_value / 10)).$((_value % 10)) GiB"
fi
seatrial_file vendor "${SEATRIAL_ROOT-}/sys/class/dmi/id/sys_vendor"
seatrial_file product "${SEATRIAL_ROOT-}/sys/class/dmi/id/product_name"
seatrial_file firmware "${SEATRIAL_ROOT-}/sys/class/dmi/id/bios_version"
_found=
for _name in "${SEATRIAL_ROOT-}"/sys/class/infiniband/* "${SEATRIAL_ROOT-}"/sys/class/cxi/*; do
  [ -e "$_name" ] || continue
  _line=
  [ -r "$_name/ports/1/rate" ] && IFS= read -r _line < "$_name/ports/1/rate"
  _found+="${_found:+, }${_name##*/}${_line:+ $_line}"
done
seatrial_fact network "$_found"
_found=
for _name in "${SEATRIAL_ROOT-}"/proc/driver/nvidia/gpus/*/information; do
  [ -r "$_name" ] || continue
  IFS=: read -r _ _line < "$_name"
  _line=${_line#"${_line%%[![:space:]]*}"}
  _found+="${_found:+, }$_line"
done
seatrial_fact gpus "$_found"
seatrial_file "gpu driver" "${SEATRIAL_ROOT-}/proc/driver/nvidia/version"
[ -n "${TOOLCHAIN-}" ] || return 0
[ -n "${SLURM_JOB_ID-}" ] && seatrial_version slurm srun
seatrial_version cc "$CC"
seatrial_version cxx "$CXX"
seatrial_version fc "$FC"
seatrial_version mpicc "$MPICC"
_line=${LAUNCH%% *}
seatrial_version launcher "${_line//\'/}"
