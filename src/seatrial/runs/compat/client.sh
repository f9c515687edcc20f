# ssh, scp and sftp of a compat job: those of the system, with the files of the job alone. A node
# shows itself by its own address, as the key is good from the addresses of the job's nodes only.
_at=${BASH_SOURCE[0]%/*}
_own=${SLURMD_NODENAME-}
[ -n "$_own" ] || read -r _own < /proc/sys/kernel/hostname
_program=$1
shift
_path=:$PATH:
_path=${_path//":$_at:"/:}
PATH=${_path#:} _program=$(PATH=${_path#:} command -v "$_program")
exec "$_program" -F "$_at/ssh_config" -o "BindAddress=$_own" "$@"
