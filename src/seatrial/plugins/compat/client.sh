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
# Each node has its own port, so localhost is called by its name. ssh would tell of a host that is
# none of the job's without its name: what it gives to a command of its own may be a line of shell.
_host() {  # the arguments of ssh; _i = which of them is the host
  local _letters
  for ((_i = 1; _i <= $#; _i++)); do
    case ${!_i} in
      --) _i=$((_i + 1)); return ;;
      -?*) _letters=${!_i#-} ;;
      *) return ;;
    esac
    while [ -n "$_letters" ]; do
      case $_letters in
        [BbcDEeFIiJLlmOopQRSWw]) _i=$((_i + 1)) ;;& # its value follows
        [BbcDEeFIiJLlmOopQRSWw]*) break ;;
      esac
      _letters=${_letters#?}
    done
  done
}
if [ "${_program##*/}" = ssh ]; then
  _host "$@"
  _name=${!_i-}
  mapfile -t _hosts < "$_at/hosts"
  _all=" ${_hosts[*]} "
  case ${_name##*@} in
    localhost | 127.0.0.1 | ::1) set -- "${@:1:_i-1}" "${_name%"${_name##*@}"}$_own" "${@:_i+1}" ;;
    '' | ssh://*) ;;
    *)
      _name=${_name##*@}
      case $_all in
        *" $_name "* | *" ${_name%%.*} "*) ;;
        *)
          echo "ssh: $_name is no node of this compat job, which has ${_hosts[*]:0:8}$([ ${#_hosts[@]} -le 8 ] || echo ' ...')" >&2
          exit 255
          ;;
      esac
      ;;
  esac
fi
exec "$_program" -F "$_at/ssh_config" -o "BindAddress=$_own" "$@"
