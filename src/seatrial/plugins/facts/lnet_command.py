"""``seatrial lnet``: LNet of a machine from its routing plan."""

from pathlib import Path

import click

from seatrial.errors import UsageError
from seatrial.plugins.facts import routing
from seatrial.units import count


@click.group("lnet")
def command() -> None:
    """Write the configuration of LNet from a routing plan.

    `seatrial lint --routing PLAN` checks whether nodes have it.
    """


@command.command("generate")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files; default: they are printed.",
)
def generate(plan: Path, output: Path | None) -> int:
    """Write files of modprobe.d for clients, routers and servers.

    PLAN is a routing.yaml. In each group, servers are an LNet network of their own, which its
    routers alone serve.
    """
    try:
        files = routing.plan_files(routing.load(plan))
    except ValueError as error:
        raise UsageError(f"{plan}: {error}") from None
    if output is None:
        for name, text in files.items():
            click.echo(f"# {name}\n{text}")
        return 0
    output.mkdir(parents=True, exist_ok=True)
    if existing := [name for name in files if (output / name).exists()]:
        raise UsageError(f"{output / existing[0]}: is there already; name another folder")
    for name, text in files.items():
        (output / name).write_text(text)
    click.echo(f"{output}: {count(len(files), 'file')}")
    return 0
