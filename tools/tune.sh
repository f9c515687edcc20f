#!/bin/sh
# Tunes the applications of suites/tuning on this host, and prints the advice of each;
# `seatrial advise TRIAL` prints it again.
#
#   sh tools/tune.sh .venv/bin/seatrial
set -eu
seatrial=$1
suite=suites/tuning

if ! sh tests/install-packages.sh applications; then
  echo "tune: install LAMMPS, GROMACS and Quantum ESPRESSO, then repeat \`make tune\`:" >&2
  echo "tune: apt-get install lammps gromacs quantum-espresso quantum-espresso-data openmpi-bin" >&2
  exit 3
fi

# This host, with the Open MPI that Debian's packages are linked with. Its ranks let others run
# while they wait, as this host may have other work.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM
"$seatrial" machine --detect | sed '/^toolchains:/,$d' >"$folder/machine.yaml"
cat >>"$folder/machine.yaml" <<'YAML'
toolchains:
  debian:
    launcher: {kind: mpirun, flavour: openmpi, command: mpirun.openmpi}
    environment: {OMPI_MCA_mpi_yield_when_idle: "1"}
YAML

status=0
stamp=$(date +%Y%m%d-%H%M%S)
for application in lammps gromacs espresso; do
  "$seatrial" tune "$suite/$application/tune.yaml" -m "$folder/machine.yaml" \
    --name "tune-$application-$stamp" || status=$?
done
exit "$status"
