"""The command ``io``."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    machine_option,
)


@click.group("io")
def io() -> None:
    """Find the best way to write and read a file system."""


@io.command("sweep")
@click.argument("file_system", metavar="NAME")
@machine_option
@click.option("--recipe", default="io", show_default=True, help="Test: io, ior, fio, h5write...")
@click.option(
    "--suite", type=click.Path(path_type=Path), help="Suite of the recipe; default: those shipped."
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values to try, such as nodes=1,2,4,8; one value: no axis. May be repeated.",
)
@click.option("--metric", default="", metavar="NAME[,NAME]", help="Figures; default: write, read.")
@click.option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    help="Direction of the figure, where the test does not say it.",
)
@click.option("--budget", default="25%", show_default=True, help="Most runs, of the whole grid.")
@click.option("--max-runs", type=click.IntRange(min=4), help="Most runs, in place of a share.")
@click.option("--time", "most_time", metavar="TIME", help="Most time of all runs, such as 2h.")
@click.option(
    "--space",
    default="10%",
    show_default=True,
    metavar="SIZE",
    help="Most space that a run may take: of what is free, or bytes such as 2TiB.",
)
@click.option("--gauge", metavar="NAME", help="Start runs only while this gauge reads little.")
@click.option("--below", type=float, metavar="NUMBER", help="What the gauge reads at most.")
@click.option("--name", "tag", help="Tag of the trial; default: date, time and tuning.")
@click.option(
    "--write", type=click.Path(path_type=Path), help="Write the file of the tuning; run nothing."
)
@click.option("--rehearse", is_flag=True, help="Run nothing; how likely is the best found?")
@click.pass_context
@act("seatrial.plugins.filesystems.sweep:sweep")
def io_sweep() -> None:
    """Sweep nodes, tasks, sizes and stripes until nothing improves.

    NAME is a file system of the machine file, or a folder on one. Few points of the grid run, from
    small to large: those that may be best by all that ran. It tells the best point, the plateau,
    the cheapest point on it, and the knee, for writing and for reading.

    \b
    seatrial io sweep scratch -m frost --time 2h --gauge ost_load --below 40
    seatrial io sweep scratch -m frost --recipe ior --axis nodes=1,2,4,8,16
    seatrial io sweep scratch -m frost --write tune.yaml     the same as a tuning
    """
