"""``seatrial list``: list the cases of a suite without running anything."""

from typing import Any

import click
import msgspec

from seatrial.cli.options import format_option
from seatrial.cli.selection import asked_of, repeat_option, selection_options
from seatrial.escaping import plain
from seatrial.execute.launchers import launch_line
from seatrial.execute.prepare import left_out_of, notes_of, prepare_trial, require_cases
from seatrial.model.job_options import described
from seatrial.show.text import folded
from seatrial.units import count


@click.command("list")
@selection_options
@repeat_option
@click.option("--commands", is_flag=True, help="Show each case's launcher line.")
@format_option("table", "json")
def command(machine: str | None, commands: bool, form: str, **selection: Any) -> int:
    """List the cases of a suite without running anything.

    SUITE is a folder with tests (default: the current one). Tests are checked as for a run.
    """
    prepared = prepare_trial(asked_of(**selection), machine, with_builds=False)
    require_cases(prepared)
    left_out = left_out_of(prepared.skipped, prepared.broken)
    if form == "json":
        click.echo(plain("\n".join(left_out)), err=True, nl=bool(left_out))
        click.echo(msgspec.json.encode(prepared.cases).decode())
        return 0
    lines = [f"{'case':16}  {'nodes':>5} {'tasks':>5} {'threads':>7}  name"]
    for case in prepared.cases:
        sizes = f"{case.nodes:>5} {case.tasks:>5} {case.threads:>7}"
        lines.append(f"{case.id}  {sizes}  {case.name}")
        if asked := described(case.job):
            lines.append(f"{'':18}asks for {asked}")
        if case.only_builds:
            lines.append(f"{'':18}(only builds)")
        elif commands:
            line = launch_line(prepared.site.machine, prepared.tests[case.test], case)
            lines.append(f"{'':18}{line or '(no launcher: the script starts its tasks)'}")
    tests = len({case.test for case in prepared.cases})
    lines += left_out
    lines += [folded(f"note: {note}") for note in notes_of(prepared)]
    machine_name = prepared.site.machine.machine
    lines.append(
        f"{count(len(prepared.cases), 'case')} of {count(tests, 'test')} on {machine_name}"
    )
    click.echo(plain("\n".join(lines)))
    return 0
