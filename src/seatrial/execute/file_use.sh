# How many files the processes of a run hold open on this node, and how many locks its Lustre client
# holds: `bash file_use.sh RUN DIRECTORY SECONDS [PATH...]`.
# A line `TIME NODE FILES LOCKS` in DIRECTORY/open_files.txt for each look, until whoever started this
# has ended it. Nodes look at the same times, the multiples of SECONDS. Files that are not below one
# of the paths do not count (no paths: all files), nor do descriptors 0 to 2, which come from the job.
set -u
LC_ALL=C
run=$1 directory=$2 seconds=$3
shift 3
root=${SEATRIAL_ROOT-}
shopt -s nullglob
which=(-o -lname '/*' ! -lname '/dev/*' ! -lname '/proc/*' ! -lname '/sys/*' ! -lname '/memfd:*')
[ "$#" -eq 0 ] || which=()
for path; do which+=(-o -lname "${path%/}/*"); done
own=(.) # Nodes of an emulated cluster see each other's processes.
[ -z "${SLURMD_NODENAME-}" ] || own=(xargs -r grep -lszxF "SLURMD_NODENAME=$SLURMD_NODENAME")
[ "${own[0]}" != . ] || own=(cat)
read -r node < /proc/sys/kernel/hostname
node=${SLURMD_NODENAME:-$node}
exec {never}<> <(:)

look() {  # files, locks
  local process each line folders=()
  while read -r process; do folders+=("${process%environ}fd"); done \
    < <(grep -lszxF "SEATRIAL_RUN=$run" /proc/[0-9]*/environ | "${own[@]}")
  files=0 locks=-
  if [ "${#folders[@]}" -gt 0 ]; then
    files=$(find "${folders[@]}" -mindepth 1 -maxdepth 1 ! -name '[012]' \
      \( "${which[@]:1}" \) -printf '.' 2> /dev/null)
    files=${#files}
  fi
  for each in "$root"/sys/fs/lustre/ldlm/namespaces/*/lock_count \
    "$root"/proc/fs/lustre/ldlm/namespaces/*/lock_count; do
    { read -r line < "$each"; } 2> /dev/null && locks=$((${locks/-/0} + line))
  done
}
while [ -d "/proc/$PPID" ]; do
  now=${EPOCHSECONDS-$(date +%s)}
  look
  printf '%s %s %s %s\n' "$((now / seconds * seconds))" "$node" "$files" "$locks" \
    >> "$directory/open_files.txt"
  now=${EPOCHSECONDS-$(date +%s)}
  read -r -t "$((seconds - now % seconds))" -u "$never" _
done
