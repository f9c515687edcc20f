"""What a zipapp of Seatrial runs: it makes a virtual environment of the packages in it.

python3.11 seatrial-0.2.0-cp311-x86_64.pyz FOLDER
"""

import compileall
import os
import platform
import stat
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

PACKAGES = "packages/"
COMMAND = """\
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -I -c 'from seatrial.cli import main; main()' "$@"
"""


def fault(archive: Path) -> str:
    """Return why this Python cannot use the packages, "" if it can. The file's name tells for which
    Python and machine they are."""
    wanted = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
    if f"-{wanted}" in archive.name:
        return ""
    return f"{archive.name} is not named as one for this Python on this machine ({wanted})"


def closed_to_others(path: Path) -> Path | None:
    """Return the first folder on the way to a program, or the program, that others may not use."""
    for part in (*reversed(path.parents), path):
        if not part.stat().st_mode & stat.S_IXOTH:
            return part
    return None


def main() -> int:
    archive = Path(sys.argv[0])
    words = sys.argv[1:]
    if len(words) != 1 or words[0].startswith("-"):
        print(f"usage: {archive.name} FOLDER    installs Seatrial in a new folder", file=sys.stderr)
        return 2
    folder = Path(words[0]).absolute()
    if reason := fault(archive):
        print(f"seatrial: {reason}; take the one that is, under its own name", file=sys.stderr)
        return 2
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        print(f"seatrial: {folder}: is there already; name a new folder", file=sys.stderr)
        return 2
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if name.startswith(PACKAGES) and not name.endswith("/"):
                path = site / name.removeprefix(PACKAGES)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.read(name))
    compileall.compile_dir(site, quiet=2)  # its users may not write there
    command = folder / "bin" / "seatrial"
    command.write_text(COMMAND)
    command.chmod(0o755)
    subprocess.run(
        [command, "man", folder / "share" / "man"], stdout=subprocess.DEVNULL, check=True
    )
    print(f"{command} is installed")
    for path in (Path(sys.executable).resolve(), command):
        if closed := closed_to_others(path):
            print(f"seatrial: other users cannot run {path}: {closed} is private", file=sys.stderr)
            print("For all users, take a Python and a folder that they can reach", file=sys.stderr)
            break
    return 0


if __name__ == "__main__":
    os.umask(os.umask(0o022) & ~0o055)  # all users can read what an account of the site installs
    sys.exit(main())
