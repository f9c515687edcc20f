"""The suites that ship with Seatrial: in an installed package below its folder of this module, in a
checkout in ``suites``."""

import shutil
from pathlib import Path

_HERE = Path(__file__).parent


def shipped_suites() -> Path:
    """Return the folder of the suites that ship: `probes`, `placement`, `recipes`, ..."""
    packaged = _HERE / "shipped"
    return packaged if packaged.is_dir() else _HERE.parents[2] / "suites"


def copy_suites(target: Path, name: str = "") -> int:
    """Copy the suite ``name`` to the folder ``target``, or all suites, each below it. Return the
    number of tests copied. Raises OSError, so where there is something in ``target``."""
    if target.is_dir() and not any(target.iterdir()):
        target.rmdir()
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(shipped_suites() / name, target, ignore=hidden)
    return sum(1 for _ in target.rglob("test.yaml"))
