#!/bin/sh
# sh booted_host.sh FOLDER COMMAND...    become the first process of a host of its own
#
# Run it in new namespaces (mounts, processes, names, network, control groups). The host has this
# host's /usr and /etc, read-only, and what FOLDER/binds says: lines of "ro|rw SOURCE TARGET".
# Nothing else of this host can be reached: an init removes files in /tmp and sets the kernel.
set -eu
folder=$1
shift
root=$folder/root
mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p proc sys dev run tmp var/lib var/log old
chmod 1777 tmp
for link in bin sbin lib lib64; do
    [ ! -e "/$link" ] || ln -s "usr/$link" "$link"
done
ln -s /run var/run

bind() { # MODE SOURCE TARGET
    if [ -d "$2" ]; then mkdir -p "$root$3"; elif [ ! -e "$root$3" ]; then
        mkdir -p "$root$(dirname "$3")" && : >"$root$3"
    fi
    mount --bind "$2" "$root$3"
    [ "$1" = rw ] || mount -o remount,bind,ro "$root$3"
}

bind ro /usr /usr
bind ro /etc /etc
while read -r mode source target; do
    bind "$mode" "$source" "$target"
done <"$folder/binds"

mount -t proc proc proc
bind ro "$root/proc/sys" /proc/sys
cat /proc/sys/kernel/random/uuid >"$folder/boot_id" # each boot has another
mount --bind "$folder/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for device in null zero full random urandom tty; do
    bind rw "/dev/$device" "/dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd

pivot_root . old
umount -l /old
rmdir /old
cd /
for place in /usr /etc /proc/sys/kernel; do
    if [ -w "$place" ]; then
        echo "booted_host.sh: $place can be written: nothing is started" >&2
        exit 9
    fi
done
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
