"""``seatrial network``: judge all-pairs matrices and the impact of congestion."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.known_machine import known_machine
from seatrial.cli.network_page import impacts_of, print_impacts, print_network
from seatrial.cli.options import json_option, text_option
from seatrial.cli.query_common import opened, trial_or_file
from seatrial.errors import UsageError
from seatrial.lazy import LazyModule
from seatrial.machine.topologies import topology_of
from seatrial.store import queries
from seatrial.store.interchange import to_json
from seatrial.store.rows import Filters, RunRow
from seatrial.verify import matrices
from seatrial.verify.figures import MetricValue
from seatrial.verify.formats import LESS, find_format
from seatrial.verify.matrices import Matrix, MatrixJudgement
from seatrial.verify.network_levels import LevelFinding, judged_by_level, network_groups
from seatrial.verify.reading import Unreadable, head, plain, plain_line, read_text

if TYPE_CHECKING:
    from seatrial.machine import detect as machines
    from seatrial.machine.model import Machine
else:  # few name a machine
    machines = LazyModule("seatrial.machine.detect")


HEAD = 64


class _Found(NamedTuple):
    """A matrix or impacts of congestion, with their origin."""

    source: str
    matrix: Matrix | None = None
    figures: Sequence[MetricValue] = ()


@click.command("network")
@click.argument("source", metavar="TRIAL|FILE")
@click.option(
    "-m", "--machine", help="Machine whose groups of nodes are used; default: the trial's."
)
@text_option("--run", "run_id", "RUN", "Only this run of the trial.")
@click.option("--ranks", is_flag=True, help="Judge ranks, not nodes, where a node has several.")
@json_option
@click.pass_obj
def command(
    folders: Folders, source: str, machine: str | None, run_id: str, ranks: bool, as_json: bool
) -> int:
    """Judge an all-pairs matrix: slow senders, receivers and links, and who cannot talk, by node
    and by level of the network.

    Of TRIAL: the latest run of each case of the probes `pairs` and `congestion`, of mpiGraph or
    GPCNeT. FILE: an output of mpiGraph or GPCNeT, a `pairs.matrix`, or an output of `congestion`.
    """
    file = Path(source)
    site: Machine | None = None
    if file.is_file():
        found = [_of_file(file)]
    else:
        found, site = _of_trial(folders, source, run_id)
    if machine is not None:
        site = machines.find_machine(machine).machine
    groups = network_groups(site) if site is not None else {}
    topology = topology_of(site) if site is not None and site.topology is not None else None
    records = []
    for number, one in enumerate(found):
        judged, levels = None, None
        if one.matrix is not None:
            judged, findings = judged_by_level(one.matrix, groups, topology, ranks)
            levels = findings if topology is not None else None
        if as_json:
            records.append(_record(one, judged, levels))
            continue
        if number:
            click.echo()
        click.echo(click.style(plain_line(one.source), bold=True))
        if judged is not None:
            print_network(judged, levels)
        else:
            print_impacts(one.figures)
    if as_json:
        click.echo(to_json(records), nl=False)
    return 0


def _of_file(file: Path) -> _Found:
    beginning = head(file, HEAD)
    if beginning is not None and matrices.is_matrix(beginning.text):
        return _Found(str(file), matrices.read(file))
    reasons = []
    for name in ("congestion", "gpcnet"):
        form = find_format(name)
        try:
            figures = form.read(read_text(Path(), str(file), form.limit, LESS))
        except Unreadable as error:
            raise UsageError(str(error)) from None
        except ValueError as error:
            reasons.append(f"as {name}'s: {plain(str(error))[:200]}")
            continue
        return _Found(str(file), figures=figures)
    raise UsageError(
        f"{file}: is neither a matrix (mpiGraph's output, or {matrices.FILE} of the probe pairs) "
        f"nor a whole output of congestion or GPCNeT ({'; '.join(reasons)})"
    )


def _of_trial(folders: Folders, source: str, run_id: str) -> "tuple[list[_Found], Machine | None]":
    with opened(folders) as store:
        trial = trial_or_file(store, source)
        found = queries.runs(store, Filters(trial=trial.path))
        found = [run for run in found if run.code in queries.MEASURED]
        if run_id:
            wanted = queries.run(store, f"{trial.tag}/{run_id}")
            found = [run for run in found if run.run_id == wanted.run_id]
    sources: dict[str, _Found] = {}
    more: Counter[str] = Counter()
    for run in found:  # newest first
        if run.case in sources:
            more[run.case] += 1
        elif (one := _of_run(run)) is not None:
            sources[run.case] = one
    if not sources:
        raise UsageError(
            f"{trial.tag}: no run with a right answer has a matrix or figures of congestion; "
            "run the probes `pairs` and `congestion`, or mpiGraph or GPCNeT"
        )
    for case, number in more.items():
        said = f"{sources[case].source} (the latest of {number + 1}; --run names another)"
        sources[case] = sources[case]._replace(source=said)
    return list(sources.values()), known_machine(trial)


def _of_run(run: RunRow) -> _Found | None:
    """Return the matrix or impacts in a run's directory; None for a run of another kind. Raises
    UsageError if it is damaged: a run with an incomplete matrix must not look like one without a
    matrix."""
    if not run.path:
        return None
    source = f"{run.case_name}, run {run.run_id[:8]}"
    folder = Path(run.path)
    matrix = head(folder / matrices.FILE, HEAD)
    if matrix is not None:
        return _Found(source, matrices.read(folder / matrices.FILE))
    stdout = head(folder / "stdout", 4096)
    if stdout is None:
        return None
    known = matrices.is_matrix(stdout.text) or stdout.text.startswith("congestion of ")
    if not known and "NetworkLoad Tests" not in stdout.text:
        return None
    return _of_file(folder / "stdout")._replace(source=source)


def _record(
    one: _Found, judged: MatrixJudgement | None, levels: list[LevelFinding] | None
) -> dict[str, Any]:
    if judged is None:
        return {"source": one.source, "impacts": impacts_of(one.figures)}
    return {
        "source": one.source,
        "unit": judged.unit,
        "ranks": judged.ranks,
        "ungrouped": judged.ungrouped,
        "hidden_pairs": judged.hidden,
        "average_gb_per_s": judged.average,
        "greatest_gb_per_s": judged.greatest,
        **msgspec.to_builtins(judged.network),
        "levels": None if levels is None else msgspec.to_builtins(levels),
    }
