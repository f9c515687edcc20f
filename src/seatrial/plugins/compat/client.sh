# ssh, scp and sftp of a compat job: those of the system, with the files of the job alone. A node
# shows itself by its own address, as the key is good from the addresses of the job's nodes only.
_at=${BASH_SOURCE[0]%/*}
_own=${SEATRIAL_COMPAT_NODE-${SLURMD_NODENAME-}}
[ -n "$_own" ] || read -r _own < /proc/sys/kernel/hostname
_program=$1
shift
_path=:$PATH:
_path=${_path//":$_at:"/:}
PATH=${_path#:} _program=$(PATH=${_path#:} command -v "$_program")
# Each node has its own port, so localhost is called by its name.
for ((_i = 1; _i <= $#; _i++)); do
  [ "${_program##*/}" = ssh ] || break
  case ${!_i} in
    -[BbcDEeFIiJLlmOopQRSWw]) _i=$((_i + 1)) ;;  # its value follows
    -*) ;;
    localhost | 127.0.0.1 | ::1) set -- "${@:1:_i-1}" "$_own" "${@:_i+1}"; break ;;
    *@localhost) set -- "${@:1:_i-1}" "${!_i%@*}@$_own" "${@:_i+1}"; break ;;
    *) break ;;
  esac
done
exec "$_program" -F "$_at/ssh_config" -o "BindAddress=$_own" "$@"
