#!/bin/sh
# Installs for the tests what Debian packages: a real Slurm, the applications of suites/recipes and
# suites/tuning, parallel HDF5 and PnetCDF, fio, PostgreSQL, InfluxDB and a browser. No service is started.
#
#   sh tests/install-packages.sh                all
#   sh tests/install-packages.sh slurm          or `recipes`, `postgresql`, `torture`, ...
#
# Exits 0 at once when everything is there, 3 when something is missing and we are not root.
set -eu

PATH=$PATH:/usr/sbin:/sbin
export PATH

missing_packages() {
    for what in $wanted; do
        "missing_$what"
    done
}

# One program tells for its package: this is much faster than asking dpkg.

missing_recipes() {
    command -v hpcc >/dev/null || printf ' hpcc'
    command -v lmp >/dev/null || printf ' lammps'
    command -v nwchem >/dev/null || printf ' nwchem'
}

missing_applications() {
    command -v lmp >/dev/null || printf ' lammps'
    command -v gmx_mpi >/dev/null || printf ' gromacs'
    command -v pw.x >/dev/null || printf ' quantum-espresso'
    [ -e /usr/share/espresso/pseudo/Si.pz-vbc.UPF ] || printf ' quantum-espresso-data'
    command -v mpirun.openmpi >/dev/null || printf ' openmpi-bin'
}

# Its compiler wrapper is that of suites/io; it brings Open MPI's headers, too.
missing_hdf5() {
    command -v h5pcc.openmpi >/dev/null || printf ' libhdf5-openmpi-dev'
}

# A file system in a process of its own, which tests stop.
missing_fuse() {
    command -v bindfs >/dev/null || printf ' bindfs'
}

# PnetCDF has a header and a library alone; Debian's is that of Open MPI.
missing_io() {
    command -v fio >/dev/null || printf ' fio'
    [ -e /usr/include/pnetcdf.h ] || printf ' libpnetcdf-dev'
}

missing_slurm() {
    command -v sbatch >/dev/null && command -v slurmctld >/dev/null &&
        command -v slurmd >/dev/null || printf ' slurm-wlm'
    command -v slurmdbd >/dev/null || printf ' slurmdbd'
    command -v munged >/dev/null || printf ' munge'
    command -v mariadbd >/dev/null || printf ' mariadb-server'
}

missing_gridengine() {
    # Debian keeps the daemons out of PATH; so it does those programs that PBS has, too.
    [ -e /usr/lib/gridengine/sge_qmaster ] || printf ' gridengine-master'
    [ -e /usr/lib/gridengine/sge_execd ] || printf ' gridengine-exec'
    [ -e /usr/lib/gridengine/qsub ] || printf ' gridengine-client'
    command -v ip >/dev/null || printf ' iproute2'
}

missing_postgresql() {
    # Debian keeps the server's programs out of PATH, below a folder of its version.
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || printf ' postgresql'
}

missing_influxdb() {
    command -v influxd >/dev/null || printf ' influxdb'
}

missing_scotch() {
    command -v scotch_gmap >/dev/null || printf ' scotch'
}

missing_hwloc() {
    command -v lstopo-no-graphics >/dev/null || printf ' hwloc-nox'
}

missing_torture() {
    command -v mkfs.xfs >/dev/null || printf ' xfsprogs'
    command -v bindfs >/dev/null || printf ' bindfs'
    command -v faketime >/dev/null || printf ' faketime'
}

missing_containers() {
    command -v ch-run >/dev/null || printf ' charliecloud'
    command -v podman >/dev/null || printf ' podman'
}

missing_modules() {
    [ -e /etc/profile.d/lmod.sh ] || printf ' lmod'
}

# Debian's Environment Modules cannot be installed beside Lmod, so they are unpacked.
unpacked=/opt/environment-modules

unpack_environment_modules() {
    where=$(mktemp -d)
    chmod 755 "$where" # apt downloads as a user of its own
    (cd "$where" && apt-get download -qq environment-modules &&
        dpkg-deb -x environment-modules_*.deb "$where/all" && mv "$where/all" "$unpacked")
    rm -rf "$where"
}

missing_chromium() {
    command -v chromium >/dev/null || printf ' chromium'
    command -v chromium-headless-shell >/dev/null || printf ' chromium-headless-shell'
}

missing_shells() {
    command -v zsh >/dev/null || printf ' zsh'
    command -v fish >/dev/null || printf ' fish'
}

missing_openssh() {
    command -v ssh-keygen >/dev/null && command -v ssh-agent >/dev/null || printf ' openssh-client'
    command -v sshd >/dev/null || printf ' openssh-server'
    command -v openssl >/dev/null || printf ' openssl'
    command -v xauth >/dev/null || printf ' xauth'
    command -v xdpyinfo >/dev/null || printf ' x11-utils'
    command -v Xvfb >/dev/null || printf ' xvfb'
}

missing_boot() {
    command -v systemctl >/dev/null || printf ' systemd'
    command -v dbus-daemon >/dev/null || printf ' dbus'
    command -v cron >/dev/null || printf ' cron'
    command -v faketime >/dev/null || printf ' faketime'
}

groups="slurm gridengine recipes applications hdf5 io fuse postgresql influxdb chromium shells openssh hwloc scotch containers modules boot torture"
wanted=${*:-$groups}
for what in $wanted; do
    case " $groups " in
    *" $what "*) ;;
    *)
        echo "install-packages: $what is none of: $groups" >&2
        exit 2
        ;;
    esac
done
missing=$(missing_packages)
case " $wanted " in
*" modules "*) [ -d "$unpacked" ] || [ "$(id -u)" -ne 0 ] || missing="$missing lmod" ;;
esac
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "install-packages: missing Debian packages:$missing (run this as root to install them)" >&2
    exit 3
fi
if ! command -v apt-get >/dev/null; then
    echo "install-packages: missing packages:$missing, and there is no apt-get to install them" >&2
    exit 3
fi

# While this policy stands, no package starts its service: the tests start their own daemons.
policy=/usr/sbin/policy-rc.d
kept=$policy.before-seatrial

restore_policy() {
    rm -f "$policy"
    [ ! -e "$kept" ] || mv "$kept" "$policy"
}

if [ -e "$policy" ] && [ ! -e "$kept" ]; then
    mv "$policy" "$kept"
fi
trap restore_policy EXIT
trap 'exit 130' HUP INT TERM
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

# A cell that nobody uses would be set up otherwise.
case " $missing " in
*" gridengine-"*)
    for package in common client exec master; do
        echo "gridengine-$package shared/gridengineconfig boolean false"
    done | debconf-set-selections
    ;;
esac

install_packages() {
    # shellcheck disable=SC2086 # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing
}

# A bare machine has no package lists yet, or old ones.
install_packages || { apt-get update && install_packages; }

case " $wanted " in
*" modules "*) [ -d "$unpacked" ] || unpack_environment_modules ;;
esac

missing=$(missing_packages)
if [ -n "$missing" ]; then
    echo "install-packages: installed, and still missing:$missing" >&2
    exit 1
fi
