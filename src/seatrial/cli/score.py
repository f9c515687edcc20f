"""``seatrial score``: SSP, SSI, HPL, HPCG, Graph500 and IO500, with their parts."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option, trials_argument
from seatrial.cli.query_common import print_page
from seatrial.cli.sides import code_of_damage, sides_of
from seatrial.errors import TrialError, UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.model.node_set import unfold
from seatrial.results.scores import ScoreFile, load_score, over_phases, score_change, score_of
from seatrial.results.selection import Side
from seatrial.show.score import Scores, score_page


@click.command("score")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@trials_argument
@format_option("table", "json")
@click.pass_obj
def command(folders: Folders, file: Path, trials: tuple[str, ...], form: str) -> int:
    """Compute the score that FILE (a score.yaml) describes from the figures of TRIAL.

    The parts come first: a score hides them. Each TRIAL has its own score; where the file has
    phases, the first TRIAL is of the first phase, and so on, and what they deliver in all their
    time is the sum. TRIAL may have conditions, as for `seatrial compare`. Exit code 1: a part has
    no figure, so there is no score.
    """
    wanted = load_score(file)
    if wanted.phases and len(wanted.phases) != len(trials):
        named = ", ".join(phase.phase for phase in wanted.phases)
        raise UsageError(f"{file}: name a trial for each phase, in their order: {named}")
    sides = sides_of(folders, trials)
    found = _scores(wanted, sides)
    print_page(score_page(found), form)
    return code_of_damage(sides) if all(one.value is not None for one in found.scores) else 1


def _scores(wanted: ScoreFile, sides: list[Side]) -> Scores:
    """Return the score of each side, and what they are together."""
    scores = [
        score_of(wanted, side, _size(wanted, side), i if wanted.phases else -1)
        for i, side in enumerate(sides)
    ]
    phased = over_phases(wanted, scores) if wanted.phases else None
    later = [] if phased else scores[1:]  # phases are no versions of one system
    changes = [score_change(wanted, scores[0], each) for each in later]
    return Scores(wanted, sides, scores, phased, changes)


def _size(wanted: ScoreFile, side: Side) -> int | None:
    """Return the nodes, or cores, of the machine of a side; None if there is not exactly one."""
    sizes = set()
    for trial in side.trials:
        try:
            machine = TrialFolder(Path(trial.path)).record().machine
        except TrialError:
            return None
        whole = wanted.per == "node"
        sizes.add(sum(len(unfold(k.names)) * (1 if whole else k.cores) for k in machine.nodes))
    return sizes.pop() if len(sizes) == 1 else None
