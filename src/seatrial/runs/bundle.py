"""The job script of a bundle: runs that share an allocation, one after the other or some at once.

    bundle_script(folder, at_once=1, cores=4)       # the text of job.sh
    bundle_list(members)                            # the text of its list of runs
    ask_to_end(folder, run_id)                      # the bundle ends this run, or does not begin it
    read_progress(folder, offset)                   # what it wrote of its runs since

It is bash alone (``bundle.sh``), in a folder of its own, with the list of its runs. Each run has
its directory, and its own ``job.sh`` claims that and writes its events, as if it were a job; the
bundle writes the order of things to ``progress``, and ends a run that reaches its walltime.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.files import open_regular, touch

PROGRESS = "progress"
GRACE_SECONDS = 6  # between the walltime of a run and its end, at most
MARGIN_SECONDS = 30  # of the walltime of a bundle beyond those of its runs

_PORTION = 1 << 20


class BundleMember(Struct, frozen=True):
    """A run of a bundle: its id, its walltime in seconds, its directory."""

    run_id: str
    walltime: float
    path: Path


class BundleLine(Struct, frozen=True):
    """A line of what a bundle wrote of its runs. Of a run that it began, ``exit_code`` is None. Of
    one that is over, ``reason`` is ``-`` if it ended by itself, ``timeout``, ``cancelled``, or
    ``skipped`` if it was never begun."""

    run_id: str
    time: float = 0.0
    exit_code: int | None = None
    reason: str = ""


def bundle_script(folder: Path, at_once: int, cores: int, job: str = "") -> str:
    """Return the text of ``job.sh`` for a bundle, ``at_once`` of whose runs run at a time, on so
    many ``cores`` each. ``job`` is bash for the id of its job, "" where the scheduler does not run
    a job again."""
    head = f"folder={shell_word(str(folder))}\nat_once={at_once}\ncores={cores}\njob={job}\n"
    return "#!/bin/bash\n" + head + Path(__file__).with_name("bundle.sh").read_text()


def bundle_list(members: Sequence[BundleMember]) -> str:
    """Return the text of ``runs``, the list of a bundle."""
    return "".join(
        f"{member.run_id}\t{math.ceil(member.walltime)}\t{member.path}\n" for member in members
    )


def walltime_of(walltimes: Sequence[float], at_once: int) -> float:
    """Return the walltime of a bundle, in seconds: enough for all its runs to reach theirs."""
    each = [walltime + GRACE_SECONDS for walltime in walltimes]
    if at_once == 1:
        return sum(each) + MARGIN_SECONDS
    # List scheduling (R. L. Graham, SIAM Journal on Applied Mathematics 17, 1969).
    return sum(each) / at_once + max(each) + MARGIN_SECONDS


def ask_to_end(folder: Path, run_id: str, *, even_if_begun: bool = True) -> None:
    """Ask a bundle to end a run, or not to begin it. Raises OSError."""
    touch(folder / f"{'cancel' if even_if_begun else 'skip'}.{run_id}")


def read_progress(folder: Path, offset: int = 0) -> tuple[list[BundleLine], int] | None:
    """Return the whole lines of a bundle's progress from ``offset`` on, and the offset behind them;
    None where its job has not begun. Odd lines are left out. Raises OSError."""
    try:
        with open_regular(folder / PROGRESS) as file:
            file.seek(offset)
            text = file.read(_PORTION)
    except FileNotFoundError:
        return None
    whole = text[: text.rfind(b"\n") + 1]
    lines = map(_line, whole.decode(errors="replace").splitlines())
    return [line for line in lines if line is not None], offset + len(whole)


def _line(text: str) -> BundleLine | None:
    words = text.split(" ")
    try:
        if words[0] == "start" and len(words) == 3:
            time = float(words[2])
            return BundleLine(words[1], time=time) if math.isfinite(time) else None
        if words[0] == "end" and len(words) == 4:
            return BundleLine(words[1], exit_code=int(words[2]), reason=words[3])
    except ValueError:
        pass
    return None
