"""Shared by the commands that compare sides: chosen runs of trials."""

from collections.abc import Iterable, Sequence

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell, tell_damage
from seatrial.results.selection import Side, gather, parse_side, trials_of


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
