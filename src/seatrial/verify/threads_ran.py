"""Whether the program of a run ran the threads that its case asks for, by what was counted.

    fault_of_threads(case, run_directory)    # gtc ran 1 thread of 6 asked: ranks 0-3

``runs/thread_counter.py`` writes the file. A rank of which nothing was counted is not proved, and
its run does not pass.
"""

from pathlib import Path

from seatrial.files import read_regular
from seatrial.journal.codes import CHECK_ERROR, MISPLACED
from seatrial.layout.node import spans
from seatrial.suite.model import Case
from seatrial.suite.proving import COUNTED_FILE, COUNTED_LINE
from seatrial.units import count
from seatrial.verify.figures import Finding
from seatrial.verify.reading import plain_line

MAX_BYTES = 64 << 20
LONGEST_RANKS = 120  # characters

_REMEDY = (
    "it must be started by $LAUNCH, and a static one must run for a while; `placement: {threads: "
    "any}` in placement.txt asks for no proof of threads"
)


def fault_of_threads(case: Case, folder: Path) -> list[Finding]:
    """Return the finding that ranks ran fewer threads than asked, or that nothing is known of
    them; none where all ran as many."""
    try:
        text = read_regular(folder / COUNTED_FILE, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        text = ""
    found = COUNTED_LINE.findall(text)
    told = {rank: (int(threads), program) for rank, threads, _, program in found}
    if case.tasks == 1 and "-" in told:  # without a launcher no rank has a number
        told.setdefault("0", told["-"])
    ran = {rank: told[str(rank)] for rank in range(case.tasks) if str(rank) in told}
    few = [rank for rank, (threads, _) in ran.items() if threads < case.threads]
    if few:
        threads, program = ran[few[0]]
        ranks = "" if case.tasks == 1 else f": {_ranks(few)}"
        fault = f"{program} ran {count(threads, 'thread')} of {case.threads} asked{ranks}"
        return [Finding(MISPLACED, plain_line(fault))]
    if len(ran) < case.tasks:
        silent = [rank for rank in range(case.tasks) if rank not in ran]
        which = "the program" if case.tasks == 1 else f"the program of {_ranks(silent)}"
        fault = f"run.prove: not proved: the threads of {which} were not seen; {_REMEDY}"
        return [Finding(CHECK_ERROR, fault)]
    return []


def _ranks(ranks: list[int]) -> str:
    text = spans(frozenset(ranks))
    text = text if len(text) <= LONGEST_RANKS else f"{text[:LONGEST_RANKS]}..."
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
