"""``python tools/check_opens.py [FOLDER]``: find calls that open, write or remove by themselves.

Below folders that others may write, a name may have become a FIFO, a link to elsewhere or another
user's file. ``seatrial/files.py`` knows that; so all other modules open, write, make and remove by
its functions. This finds the plain calls in the syntax tree. One that is right says why behind it,
or in the line above:

    text = path.read_text()  # plain: the user's own suite

Prints each fault as FILE:LINE, and exits with 1 where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "seatrial"
MARK = "# plain: "
LEAST_REASON = 10  # characters

# Whole modules whose files are the user's own, or Seatrial's.
EXEMPT = {
    "files.py": "it is what the others call",
    "api/__init__.py": "tables in a folder that the user names",
    "plugins/facts/acts.py": "a folder that is made for it, and one that the user names",
    "cli/about.py": "pages of the manual, where the user says",
    "cli/export.py": "a file that the user names",
    "cli/report.py": "a report, where the user says",
    "cli/report_signatures.py": "a report that the user names",
    "show/report/sign.py": "a report, its signature and its signers, which the user names",
    "plugins/importers/oth_suite.py": "suites that the user names, and one written where he says",
    "plugins/guard/program.py": "the user's own cache, folders that are made for it alone, and the "
    "site's guard, which its administrator writes",
    "plugins/guard/quota.py": "the site's quotas, which its administrator writes",
    "plugins/orders/search.py": "a folder that is made for it alone",
    "model/suite.py": "a copy of a shipped suite, where the user says",
    "judge/python_function.py": "the user's own suite",
}

METHODS = frozenset(
    (
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "touch",
        "unlink",
        "rmdir",
        "mkdir",
        "chmod",
        "hardlink_to",
    )
)
OF_OS = frozenset(
    (
        "open",
        "unlink",
        "remove",
        "rmdir",
        "removedirs",
        "mkdir",
        "makedirs",
        "mkfifo",
        "chmod",
        "chown",
        "truncate",
        "utime",
        "link",
    )
)
OF_SHUTIL = frozenset(["rmtree", "copytree", "copy", "copy2", "copyfile", "move", "chown"])

# Objects that are no paths and have a method of such a name.
OTHERS = frozenset(("backend", "ledger", "webbrowser", "gzip", "tarfile", "reading"))
# What a path begins with that is Seatrial's own, or the kernel's.
OWN = ("__file__", "'/proc/", "'/sys/", "os.devnull", "BOOT_ID", "STATIC")


def faults_in(source: str, name: str) -> Iterator[str]:
    """Yield the faults of a module."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (called := _plain(node)) and not _is_own(node):
            reasons = [
                line.partition(MARK)[2]
                for line in lines[max(0, node.lineno - 2) : node.end_lineno]
                if MARK in line
            ]
            if not any(len(reason.strip()) >= LEAST_REASON for reason in reasons):
                yield f"{name}:{node.lineno}: {called}: call a function of seatrial/files.py"


def _plain(call: ast.Call) -> str:
    """Return the name of a plain call, or ""."""
    function = call.func
    if isinstance(function, ast.Name):
        return "open" if function.id == "open" else ""
    if not isinstance(function, ast.Attribute):
        return ""
    of, name = function.value, function.attr
    owner = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
    known = {"os": OF_OS, "shutil": OF_SHUTIL}.get(owner, METHODS)
    by_descriptor = name != "open" and any(word.arg == "dir_fd" for word in call.keywords)
    plain = name in known and owner not in OTHERS and not by_descriptor
    return f"{owner}.{name}" if plain else ""


def _is_own(call: ast.Call) -> bool:
    text = ast.unparse(call)
    return any(word in text for word in OWN)


def faults(folder: Path) -> list[str]:
    """Return the faults of all modules of a folder, and exemptions of modules that are gone."""
    found: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name not in EXEMPT:
            found += faults_in(path.read_text(), name)
    gone = [name for name in EXEMPT if folder == SOURCE and not (folder / name).exists()]
    return found + [f"{name}: is exempt, and is not there" for name in gone]


def main() -> int:
    found = faults(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    print("\n".join(found) if found else "no plain opens")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
