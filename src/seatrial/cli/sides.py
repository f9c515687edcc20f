"""Studies that compare sides, each a choice of runs of trials: the acts of their commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page, tell, tell_damage
from seatrial.cli.study import print_or_draw
from seatrial.errors import TrialError, UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.model.node_set import unfold
from seatrial.results import ratios
from seatrial.results.best import BestQuery, best_settings, over_sizes
from seatrial.results.given import measured_sides
from seatrial.results.matrix import MatrixQuery, ResultMatrix, reasons_of, result_matrix
from seatrial.results.ratios import per_resource
from seatrial.results.scaling import ScalingQuery, over_x, without_metric
from seatrial.results.scores import ScoreFile, load_score, over_phases, score_change, score_of
from seatrial.results.selection import Side, gather, parse_side, trials_of, words_of
from seatrial.show.best import best_page
from seatrial.show.given import given_over
from seatrial.show.matrix import matrix_page
from seatrial.show.ratio import ratio_page
from seatrial.show.scaling import scaling_page
from seatrial.show.score import Scores, score_page

NOT_PASSED, NOT_RUN = 1, 3  # exit codes of ``matrix``


def sides_of(
    folders: Folders, texts: Iterable[str], tests: Sequence[str] = (), *, given: bool = False
) -> list[Side]:
    """Return the sides of a study, and tell which of their trials have damaged journals. With
    ``given`` they may be figures that somebody gave."""
    with opened(folders) as store:
        sides = [gather(store, parse_side(text), tests, given=given) for text in texts]
        tell_damage(store, trials_of(sides))
    for line in dict.fromkeys(text for side in sides for text in side.unlike):
        tell(line)
    return sides


def code_of_damage(sides: Iterable[Side]) -> int:
    """Return 3 if a trial of the sides has a damaged journal, as runs may be missing; else 0."""
    return 3 if any(trial.damaged for side in sides for trial in side.trials) else 0


def matrix(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Do ``seatrial matrix``; return the exit code."""
    with opened(folders) as store:
        sides = [gather(store, parse_side(trial), tests) for trial in trials]
        damaged = [trial for trial in trials_of(sides) if trial.damaged]
        tell_damage(store, damaged)
        reasons = reasons_of(store, trials_of(sides), tests)
    result = result_matrix(sides, MatrixQuery(**asked), reasons)
    print_page(matrix_page(result), form)
    return _code_of_matrix(result) or (NOT_RUN if damaged else 0)


def _code_of_matrix(result: ResultMatrix) -> int:
    """Return 0 if all passed, 1 if something failed or was not built, 3 if else something was not
    run."""
    total = result.total
    if total.get("failed") or total.get("build failed"):
        return NOT_PASSED
    return NOT_RUN if total.get("not run") else 0


def scaling(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Do ``seatrial scaling``; return the exit code."""
    query = ScalingQuery(**asked)
    every = sides_of(folders, trials, tests, given=True)
    sides = measured_sides(every)
    tables = over_x(sides, query)
    page = scaling_page(tables, query, without_metric(sides, query), given_over(every, tables))
    print_or_draw(page, form)
    return 0


def ratio(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    of: str,
    tests: tuple[str, ...],
    form: str,
    **asked: Any,
) -> int:
    """Do ``seatrial ratio``; return the exit code."""
    name, first, second = ratios.two_values(of)
    query = ratios.RatioQuery(of=name, values=(first, second), **asked)
    sides = sides_of(folders, trials, tests)
    tables = ratios.ratios(sides, query)
    print_page(ratio_page(tables, tables, ratios.without_both(sides, tables)), form)
    return code_of_damage(sides)


def best(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    over: str,
    best_of: str,
    tests: tuple[str, ...],
    per: str | None,
    form: str,
    **asked: Any,
) -> int:
    """Do ``seatrial best``; return the exit code."""
    query = BestQuery(over=words_of(over), best_of=words_of(best_of), **asked)
    sides = sides_of(folders, trials, tests, given=True)
    if per:
        sides = [per_resource(side, per) for side in sides]
    print_page(best_page(over_sizes(best_settings(sides, query))), form)
    return code_of_damage(sides)


def score(folders: Folders, file: Path, trials: tuple[str, ...], form: str) -> int:
    """Do ``seatrial score``; return the exit code."""
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
