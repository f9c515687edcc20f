# Sourced by a build: unpack $tarball into source/ if its SHA-256 is $sha256. Without a tarball the
# program is on PATH, and the build is done.
[ -n "$tarball" ] || exit 0
cp -- "$tarball" source.tar || exit
echo "$sha256  source.tar" | sha256sum --check --quiet - || {
  echo "$tarball: its SHA-256 is not '$sha256': give --set sha256=... as its publisher does" >&2
  exit 1
}
mkdir source && tar -xf source.tar -C source || exit
