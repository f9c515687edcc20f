"""``seatrial variability``: how much the tests of a trial vary, and which runs are outliers."""

from pathlib import Path

import click

from seatrial.cli import Folders, options
from seatrial.cli.options import FiniteRange, json_option, test_filter
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.errors import UsageError
from seatrial.execute.trial_folder import known_machine
from seatrial.results.store import queries, series
from seatrial.results.variability import variability
from seatrial.show.variability import variability_page


@click.command("variability")
@click.argument("trial", shell_complete=options.complete("trials"))
@test_filter
@click.option("--metric", default="", help="Only this metric; `elapsed` is one.")
@click.option(
    "--exclude",
    type=FiniteRange(min=1),
    metavar="D",
    help="Leave out figures farther than D robust deviations from the median.",
)
@json_option
@click.pass_obj
def command(
    folders: Folders, trial: str, test: str, metric: str, exclude: float | None, as_json: bool
) -> int:
    """Show how much the tests of TRIAL vary, its outliers, and what they share."""
    with opened(folders) as store:
        row = queries.trial(store, trial)
        tell_damage(store, [row])
        found = variability(store, row, known_machine(Path(row.path)), test, metric, exclude)
        known = series.metric_names(store)
    if not found.rows:
        if metric not in ("", "elapsed", *known):
            raise UsageError(f"--metric: no run has {metric!r}; see `seatrial show RUN`")
        what = f" with --test {test}" if test else ""
        what += f" with --metric {metric}" if metric else ""
        raise UsageError(f"{row.tag}: no run{what} is over; see `seatrial runs --trial {row.tag}`")
    print_page(variability_page(found), "json" if as_json else "table")
    return 0
