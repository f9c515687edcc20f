"""The space that a test requires (``requires.space``): asked by the job before its script starts.

The node that will write asks: it sees the file system, and other runs may have freed or taken space
while the job was queued. It is asked for what ``statvfs`` says is free for this user; on Lustre,
where ``lfs`` is there, also for what the fullest target has (`lfs df`), and for what the quota of
the user leaves (`lfs quota`). What was found is in ``space.txt``; whatever cannot be read is
``unknown``, and then the script does not start either.
"""

from seatrial.escaping import shell_word
from seatrial.model.run_settings import SPACE_FILE
from seatrial.model.test import RunSettings

LFS_SECONDS = 60

# The first word is the answer; the lines below it are for people and for the reason of the verdict.
# Numbers are of at most 18 digits, which bash can compute with: 2^62 stands for more than that.
_ASK = rf"""
seatrial_lfs() {{ timeout {LFS_SECONDS} lfs "$@" -- "$path"; }}
seatrial_lustre() {{ # of $path, for a file of $1 bytes over $2 stripes: sets answer and told
  local file=$1 stripes=$2 table uuid free least='' targets=0 quota used limit left
  table=$(seatrial_lfs df 2>&1) || {{ answer="unknown lfs df: $table"; return; }}
  while read -r uuid _ _ free _; do
    case $uuid in *-OST*_UUID) ;; *) continue ;; esac
    case $free in '' | *[!0-9]*) answer="unknown lfs df: $uuid $free"; return ;; esac
    targets=$((targets + 1)) free=$((free * 1024))
    [ -n "$least" ] && [ "$least" -le "$free" ] || least=$free
  done <<< "$table"
  [ "$targets" -gt 0 ] || {{ answer='unknown lfs df names no target'; return; }}
  [ "$stripes" -ne 0 ] || stripes=$(seatrial_lfs getstripe -c -d 2> /dev/null)
  case $stripes in -1) stripes=$targets ;; '' | 0 | *[!0-9]*) stripes=1 ;; esac
  [ "$stripes" -le "$targets" ] || stripes=$targets
  file=$(((file + stripes - 1) / stripes))
  told+=$'\n'"targets $targets"$'\n'"fullest $least"$'\n'"part $file"
  [ "$file" -le "$least" ] || answer=refused
  quota=$(seatrial_lfs quota -q -u "$UID" 2>&1) || case $quota in *ot\ supported*) return 0 ;; esac
  # lfs puts a path of more than 15 characters on a line of its own
  read -r -d '' used _ limit _ <<< "${{quota#*"$path"}}" || :
  used=${{used//[]*[]/}} limit=${{limit//[]*[]/}}
  case $used:$limit in :* | *: | *[!0-9:]*) answer="unknown lfs quota: $quota"; return ;; esac
  [ "$limit" -gt 0 ] || return 0
  left=$(((limit - used) * 1024)) told+=$'\n'"quota $left"
  [ "$left" -ge "$wanted" ] || answer=refused
}}
seatrial_space() {{
  local wanted=$1 file=$2 stripes=$3 path=$4 said blocks free block type answer=enough told
  local most=$((1 << 62)) numbers='^[0-9]+ [0-9]+ [0-9]+ '
  said=$(LC_ALL=C timeout {LFS_SECONDS} stat -f -c '%b %a %S %T' -- "$path" 2>&1)
  [[ $said =~ $numbers ]] || {{ echo "unknown ${{said:-statvfs does not answer}}"; return; }}
  read -r blocks free block type <<< "$said"
  [ "$blocks" != 0 ] || {{ echo "unknown $type does not say how large it is"; return; }}
  if [ "${{#free}}" -gt 18 ] || [ "$free" -gt $((most / block)) ]; then
    free=$most
  else
    free=$((free * block))
  fi
  told="path $(cd -- "$path" 2> /dev/null && pwd || echo "$path")"
  told+=$'\n'"wanted $wanted"$'\n'"free $free"
  [ "$free" -ge "$wanted" ] || answer=refused
  if [ "$type" = lustre ] && command -v lfs > /dev/null; then seatrial_lustre "$file" "$stripes"; fi
  printf '%s\n%s\n' "$answer" "$told"
}}
"""

_REFUSE = f"""\
read -r _room < "$_run/{SPACE_FILE}"
[ "$_room" = enough ] || {{
  echo 'seatrial: there is not the space that the test requires; nothing was started' >&2
  exit 1
}}
unset -f seatrial_space seatrial_lustre seatrial_lfs
unset _room
"""


def space_lines(settings: RunSettings) -> str:
    """Return bash that ends the subshell of a script in which it stands where the space that the
    run takes is not there; "" where it asks for none."""
    if not settings.space:
        return ""
    file = settings.largest_file or settings.space
    words = f"{settings.space} {file} {settings.stripe_count} {shell_word(settings.space_path)}"
    return f'{_ASK}seatrial_space {words} 2>&1 >| "$_run/{SPACE_FILE}"\n{_REFUSE}'
