"""``seatrial score``: SSP, SSI, HPL, HPCG, Graph500 and IO500, with their parts."""

from pathlib import Path
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import format_option, trials_argument
from seatrial.cli.sides import code_of_damage, sides_of
from seatrial.cli.tables import TextTable
from seatrial.errors import TrialError, UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import TrialFolder
from seatrial.model.node_set import unfold
from seatrial.results.scores import (
    Phased,
    Score,
    ScoreChange,
    ScoreFile,
    TermScore,
    load_score,
    over_phases,
    score_change,
    score_of,
)
from seatrial.results.selection import Side
from seatrial.results.store.by_case import causes
from seatrial.results.store.export import to_json
from seatrial.units import show_number, show_signed, show_unit


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
    scores = [
        score_of(wanted, side, _size(wanted, side), i if wanted.phases else -1)
        for i, side in enumerate(sides)
    ]
    phased = over_phases(wanted, scores) if wanted.phases else None
    later = [] if phased else scores[1:]  # phases are no versions of one system
    changes = [score_change(wanted, scores[0], each) for each in later]
    show = _print_json if form == "json" else _print_pages
    show(wanted, sides, scores, phased, changes)
    return code_of_damage(sides) if all(score.value is not None for score in scores) else 1


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


def _print_pages(
    wanted: ScoreFile,
    sides: list[Side],
    scores: list[Score],
    phased: Phased | None,
    changes: list[ScoreChange],
) -> None:
    pages = [_page(wanted, side, score) for side, score in zip(sides, scores, strict=True)]
    pages += [_phases(phased)] if phased else []
    click.echo("\n\n".join([*pages, *map(_change, changes)]))


def _print_json(
    wanted: ScoreFile,
    sides: list[Side],
    scores: list[Score],
    phased: Phased | None,
    changes: list[ScoreChange],
) -> None:
    record = {
        "score": wanted.score,
        "about": wanted.about,
        "scores": [
            {**_without_values(score), "rehearsed": _rehearsed(side)}
            for side, score in zip(sides, scores, strict=True)
        ],
        "phases": None if phased is None else msgspec.to_builtins(phased),
        "changes": msgspec.to_builtins(changes),
    }
    click.echo(to_json(record), nl=False)


def _without_values(score: Score) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(score)
    for part in record["parts"]:
        del part["values"]
    return record


def _rehearsed(side: Side) -> bool:
    return any(trial.rehearsed for trial in side.trials)


def _page(wanted: ScoreFile, side: Side, score: Score) -> str:
    title = f"{score.score.upper()} of {score.side}"
    title += " (rehearsed: nothing of it was measured)" if _rehearsed(side) else ""
    lines = [click.style(plain_line(title), bold=True)]
    lines += [plain_line(wanted.about)] if wanted.about else []
    lines += ["", _table(wanted, score.parts), ""]
    if score.value is None:
        return "\n".join([*lines, plain_line(f"no score: {score.reason}")])
    return "\n".join([*lines, plain_line(_total(wanted, score))])


def _total(wanted: ScoreFile, score: Score) -> str:
    text = f"{score.score.upper()}: {show_number(score.value or 0)} {score.unit}".rstrip()
    if score.size is not None:
        text += f", of {score.size} {wanted.per}s"
    if score.share is not None:
        text += f", {100 * score.share:.1f} % of the peak"
    return text


def _table(wanted: ScoreFile, parts: list[TermScore]) -> str:
    columns = f"part~ | metric~ | figure> | unit | n> | {wanted.per}s> | rate> | of~ | excluded~"
    rated = wanted.score in ("ssp", "ssi") or any(part.rate != part.figure for part in parts)
    table = TextTable(columns)
    for part in parts:
        metric = part.metric if part.metric != part.part else ""
        unit = show_unit(part.unit, "{}")
        rate = (part.rate, part.rate_unit) if rated else ("", "")
        excluded = causes(part.excluded) or ("" if part.n else "no figure")
        table.add(part.part, metric, part.figure, unit, part.n, part.count, *rate, excluded)
    return str(table)


def _phases(phased: Phased) -> str:
    if phased.total is None or phased.average is None:
        return plain_line(f"over all phases: no score: {phased.reason}")
    return plain_line(
        f"over all phases, {show_number(phased.days)} days: {show_number(phased.total)} "
        f"{phased.unit}, {show_number(phased.average)} {phased.average_unit} on the average"
    )


def _interval(low: float | None, high: float | None) -> str:
    """Return an interval of factors as changes in per cent; "" where an end is not known."""
    if low is None or high is None:
        return ""
    return f"{show_signed(100 * (low - 1), 1)}..{show_signed(100 * (high - 1), 1)} %"


def _change(one: ScoreChange) -> str:
    """Return how a score changed, with its parts as factors: above 1 is better."""
    title = f"{one.first} -> {one.second}"
    if one.ratio is None:
        return click.style(plain_line(f"{title}: {one.reason}"), bold=True)
    interval = _interval(one.low, one.high) or "of single runs: repeat"
    text = f"{title}: {show_signed(100 * (one.ratio - 1), 1)} % ({interval})"
    if one.of_size != 1:
        text += f", x{one.of_size:.3g} of it by the size of the system"
    table = TextTable("part~ | times as good> | 95 %> | ")
    for part in one.parts:
        known = part.low is not None and part.high is not None
        ends_of_part = f"{part.low:.4g}..{part.high:.4g}" if known else ""
        few = f" ({part.reason})" if part.reason and part.verdict != "unclear" else ""
        table.add(part.part, f"x{part.factor:.4g}", ends_of_part, f"{part.verdict}{few}")
    return "\n".join([click.style(plain_line(text), bold=True), "", str(table)])
