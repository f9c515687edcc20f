"""``seatrial lnet``: LNet of a machine from its routing plan."""

from pathlib import Path

import click

from seatrial.errors import UsageError
from seatrial.rules import routing
from seatrial.units import count


def generate(plan: Path, output: Path | None) -> int:
    files = routing.plan_files(routing.load(plan))
    if output is None:
        for name, text in files.items():
            click.echo(f"# {name}\n{text}")
        return 0
    output.mkdir(parents=True, exist_ok=True)
    if there := [name for name in files if (output / name).exists()]:
        raise UsageError(f"{output / there[0]}: is there already; name another folder")
    for name, text in files.items():
        (output / name).write_text(text)
    click.echo(f"{output}: {count(len(files), 'file')}")
    return 0
