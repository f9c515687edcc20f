# The mode sshd of a compat job, read by compat.sh: on each node an sshd of the job's owner, with
# keys of this job alone. Nothing of it is outside the directory of the job.

find_program() {  # _found = the first of these files that is there
  for _found; do [ ! -x "$_found" ] || return 0; done
  return 1
}

# sshd's own StrictModes refuses a directory that is writable for others, also a sticky one (/tmp).
require_safe_path() {
  local folder=$J mode_of owner
  while [ -n "$folder" ]; do
    read -r mode_of owner < <(stat -c '%a %u' -- "$folder")
    if [ "$owner" -ne 0 ] && [ "$owner" -ne "$UID" ]; then
      fail $BROKEN "$folder is not yours, so its owner could replace the keys of sshd below it; $OTHER"
    fi
    if (((8#$mode_of & 8#22) && !(8#$mode_of & 8#1000))); then
      fail $BROKEN "$folder can be written by its group or by all, who could replace the keys of sshd below it; chmod go-w it, or $OTHER"
    fi
    folder=${folder%/*}
  done
}
readonly OTHER='let SEATRIAL_COMPAT_DIR name another folder, or use `mode: shim`'

prepare_keys() {
  local program addresses me TMPDIR=$J  # bash may put a here-document there
  case $J in
    *[!A-Za-z0-9/._+:,=@-]*) fail $BROKEN "$J: files of ssh take no path with other characters than letters, digits and /._+:,=@-; $OTHER" ;;
  esac
  for program in ssh ssh-keygen getent; do
    command -v "$program" > /dev/null || fail $BROKEN "mode sshd needs the program $program; use \`mode: shim\`"
  done
  require_safe_path
  rm -f "$J/key" "$J/key.pub" "$J/host_key" "$J/host_key.pub" "$J/ports"
  ssh-keygen -q -t ed25519 -N '' -C compat -f "$J/key" 2>> "$J/log" &&
    ssh-keygen -q -t ed25519 -N '' -C compat -f "$J/host_key" 2>> "$J/log" ||
    fail $BROKEN "ssh-keygen cannot write in $J: $(tail -n 1 "$J/log")"
  here
  addresses=$(getent ahosts "${hosts[@]}" "$_here" | while read -r one _; do echo "$one"; done | sort -u)
  [ -n "$addresses" ] || fail $BROKEN "no address of ${hosts[0]} is known (getent ahosts); use \`mode: shim\`"
  me=$(id -un)
  # With SHLVL bash takes itself for no login of sshd, and does not read ~/.bashrc: that may take
  # long and print text, and `enter` clears the environment after it. No sshd refuses 200 commands
  # at once: MaxStartups has no share that is dropped by chance.
  echo "compat $(< "$J/host_key.pub")" > "$J/known_hosts"
  : > "$J/Xauthority"  # without it xauth complains in the first session with windows
  echo "restrict,pty,X11-forwarding,from=\"${addresses//$'\n'/,}\" $(< "$J/key.pub")" \
    > "$J/authorized_keys"
  cat > "$J/sshd.conf" << END
HostKey $J/host_key
PidFile none
AuthorizedKeysFile $J/authorized_keys
AllowUsers $me
PermitRootLogin prohibit-password
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
PermitUserEnvironment no
AllowTcpForwarding no
AllowAgentForwarding no
X11Forwarding yes
PrintMotd no
PrintLastLog no
SetEnv XAUTHORITY=$J/Xauthority SHLVL=1
ForceCommand $J/enter
MaxStartups 400
MaxSessions 200
LogLevel INFO
END
  if find_program /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server \
    /usr/lib/ssh/sftp-server /usr/libexec/sftp-server; then
    echo "Subsystem sftp $_found" >> "$J/sshd.conf"
  fi
}

serve() {  # on a node: an sshd at the first free port; says `up NODE PORT`, or `no NODE WHY`
  local log=$J/sshd.$_here.log try at=$_here now listener i why taken
  getent ahosts "$at" > /dev/null || at=0.0.0.0
  if ! find_program "$(command -v sshd)" /usr/sbin/sshd /usr/local/sbin/sshd; then
    echo "no $_here sshd is not installed"
    return
  fi
  for ((try = 0; try < 16; try++)); do
    now=$((port + try)) taken=
    "$_found" -D -f "$J/sshd.conf" -o "ListenAddress=$at:$now" -E "$log" \
      < /dev/null > /dev/null 2>> "$log" {_pipe}>&- &
    listener=$!
    echo "$listener" >&"$_pipe"
    for ((i = 0; i < 1000; i++)); do  # 20 s: a busy node may take long
      why=$(tail -n 1 "$log" 2> /dev/null)
      case $why in *"Server listening on"*)
        echo "up $_here $now"
        return
        ;;
      esac
      kill -0 "$listener" 2> /dev/null || break
      pause 0.02
    done
    kill "$listener" 2> /dev/null
    why=$(tail -n 1 "$log" 2> /dev/null)  # it may have spoken, and ended, since the last look
    case $(< "$log") in *"Address already in use"* | *"Cannot bind"*) taken=1 ;; *) break ;; esac
    rm -f "$log"
  done
  if [ -n "$taken" ]; then
    echo "no $_here sshd finds no free port from $port to $now; let \`compat: {port: ...}\` of the machine's file name others"
  else
    echo "no $_here sshd does not listen to port $now: ${why:-it says nothing}"
  fi
}

write_client() {  # ssh_config, and ssh, scp and sftp that use it
  local host at name more= TMPDIR=$J
  [ ${#hosts[@]} -le 8 ] || more=' ...'
  {
    while read -r host at; do
      printf 'Host %s %s.*\n  Port %s\n' "$host" "$host" "$at"
    done < "$J/ports"
    # The last command holds its stdout open until it has spoken: ssh would end it before.
    cat << END
Host ${hosts[*]} ${hosts[*]/%/.*}
  User $(id -un)
  HostKeyAlias compat
  IdentityFile $J/key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $J/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
  KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256
  BatchMode yes
  ProxyCommand none
  LogLevel ERROR
Host *
  LogLevel FATAL
  ProxyCommand sh -c 'echo "ssh: this host is no node of this compat job, which has ${hosts[*]:0:8}$more" >&2; exit 1'
END
  } > "$J/ssh_config"
  for name in ssh scp sftp; do
    printf '#!/bin/bash -p\n. %q/client.sh %s "$@"\n' "$J" "$name" > "$J/$name.new"
    chmod 700 "$J/$name.new"
    mv "$J/$name.new" "$J/$name"
  done
  cp "$J/ssh" "$J/rsh"
}
