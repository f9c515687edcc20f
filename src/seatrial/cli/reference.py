"""``seatrial reference``: what metrics are expected to be on a machine."""

from __future__ import annotations

import click

from seatrial.cli import Folders


@click.group("reference")
def command() -> None:
    """Accept measured figures as references, or list those of a machine.

    References stand beside the machine, in machines/NAME/references.yaml. A run whose figure
    misses its reference gets the verdict `performance`.
    """


@command.command("accept")
@click.argument("trial")
@click.option("--metric", default="", help="Only this metric.")
@click.option("--rehearsed", is_flag=True, help="Even of a rehearsal, which measured nothing.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
@click.pass_obj
def accept(folders: Folders, trial: str, metric: str, rehearsed: bool, dry_run: bool) -> int:
    """Write references from the measured medians of TRIAL.

    The tolerance of each is learned from the spread of its figures: the more they scatter, the
    wider. A reference that is there for the same case is replaced; others stay as they are.
    """
    from pathlib import Path

    from seatrial.cli.asking import opened
    from seatrial.errors import UsageError
    from seatrial.judge.learned import learn_from
    from seatrial.store import queries
    from seatrial.trial.folder import TrialFolder
    from seatrial.units import count
    from seatrial.verify import reference_file

    with opened(folders) as store:
        row = queries.trial(store, trial)
        if row.rehearsed and not rehearsed:
            raise UsageError(
                f"{row.tag}: is a rehearsal, its figures were never measured; name a real trial, "
                "or add --rehearsed"
            )
        learning = learn_from(store, row, metric)
    path = Path(TrialFolder(Path(row.path)).record().references)
    for what, why in learning.left_out:
        click.echo(f"left out: {what}: {why}", err=True)
    if not learning.references:
        raise UsageError(f"{row.tag}: no figure to accept; see `seatrial runs --trial {row.tag}`")
    if not dry_run:
        reference_file.accept(path, learning.references)
    click.echo(_table(learning.references))
    done = "would be written to" if dry_run else "written to"
    click.echo(f"{count(len(learning.references), 'reference')} {done} {path}")
    return 0


@command.command("list")
@click.option("-m", "--machine", help="Machine, by name or file; default: this host.")
def list_references(machine: str | None) -> int:
    """List the references of a machine."""
    from seatrial.machine.load import find_machine
    from seatrial.verify.references import load

    site = find_machine(machine)
    references = load(site.references)
    if not references.entries:
        click.echo(f"{site.references}: no references yet; `seatrial reference accept TRIAL`")
        return 0
    click.echo(_table(references.entries))
    return 0


def _table(references: object) -> str:
    from collections.abc import Sequence
    from typing import cast

    from seatrial.cli.asking import show_figure
    from seatrial.cli.tables import Column, table
    from seatrial.suite.model import show
    from seatrial.verify.references import Reference

    columns = [
        Column("test", folds=True),
        Column("where", folds=True),
        Column("toolchain", folds=True),
        Column("metric"),
        Column("expected", right=True),
        Column("allowed", right=True),
    ]
    rows = []
    for one in cast(Sequence[Reference], references):
        where = ",".join(f"{name}={show(value)}" for name, value in one.where.items())
        if one.value is None:
            expected = ""
            bounds = [f">= {one.min:g}" if one.min is not None else ""]
            bounds.append(f"<= {one.max:g}" if one.max is not None else "")
        else:
            expected = show_figure(one.value, one.unit)
            bounds = [f"{100 * b:+.1f} %" for b in (one.lower, one.upper) if b is not None]
        allowed = " ".join(filter(None, bounds)) or "5 % worse"
        rows.append([one.test, where, one.toolchain or "", one.metric, expected, allowed])
    return table(columns, rows)
