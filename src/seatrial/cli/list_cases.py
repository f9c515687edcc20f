"""``seatrial list``: the cases of a suite, without running anything."""

from __future__ import annotations

from typing import Any

import click

from seatrial.cli.options import asked_of, selection_options


@click.command("list")
@selection_options
@click.option("--commands", is_flag=True, help="Show each case's launcher line.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def command(machine: str | None, commands: bool, form: str, **selection: Any) -> int:
    """List the cases of a suite without running anything.

    SUITE is a folder with tests (default: the current one). Tests are checked as for a run.
    """
    from seatrial.trial.plan import make_plan, require_cases

    plan = make_plan(asked_of(**selection), machine, with_builds=False)
    require_cases(plan)
    if form == "json":
        import msgspec

        click.echo(msgspec.json.encode(plan.cases).decode())
        return 0
    lines = []
    for case in plan.cases:
        lines.append(f"{case.id}  {_resources(case)}  {case.name}")
        if commands:
            from seatrial.runs.launchers import launch_line

            line = launch_line(plan.site.machine, plan.tests[case.test], case)
            lines.append(f"{'':16}  {line or '(the script starts itself)'}")
    tests = len({case.test for case in plan.cases})
    lines += [f"left out: {what}: {why}" for what, why in plan.skipped]
    lines.append(f"{len(plan.cases)} cases of {tests} tests on {plan.site.machine.machine}")
    click.echo("\n".join(lines))
    return 0


def _resources(case: Any) -> str:
    return f"{case.nodes:>4}n {case.tasks:>5}t x{case.threads:<3}"
