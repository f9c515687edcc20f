"""The commands ``order`` and ``pattern``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    choice_option,
    complete,
    format_option,
    quiet_option,
    selection_options,
    together,
)

_MFDN_KINDS = ("DM", "CM", "BDM", "BCM")
_TARGETS = ("cray", "slurm", "openmpi", "mpich")


def _for(about: str) -> Callable[..., Any]:
    return choice_option("--for", "target", of=_TARGETS, help=about)


def _written_for(*machine: str) -> Callable[..., Any]:
    """Return the options of who reads an order; ``machine``: the names of that of the machine."""
    return together(
        _for(
            "Who reads it: MPICH_RANK_ORDER of cray-mpich, a SLURM_HOSTFILE, a rankfile of Open "
            "MPI, a host file of MPICH; all but cray need --nodes."
        ),
        click.option("--nodes", default="", help="Node set, in the order of the slots."),
        click.option(
            *machine,
            help="Machine of that cray-mpich: `launcher` in its file tells what it refuses.",
        ),
    )


_WRITTEN_FOR = _written_for("-m", "--machine")
_PER_NODE = click.option(
    "-N", "--per-node", type=int, required=True, help="Ranks of a node; the last may have fewer."
)
_RANKS = click.option("-n", "--ranks", type=int, required=True, help="Number of ranks.")
_sized = together(_RANKS, _PER_NODE, _WRITTEN_FOR)


@click.group("order")
def order() -> None:
    """Write a rank order: which rank runs in which slot of the nodes.

    \b
    seatrial order folded -n 64 -N 16 > MPICH_RANK_ORDER
    seatrial order grid -R -g 8,8,4 -c 4,4,2 > MPICH_RANK_ORDER
    seatrial order smp -n 64 -N 16 --for slurm --nodes n[1-4] > hosts

    How the file is given to the library is said on stderr.
    """


@order.command("smp")
@_sized
@act("seatrial.plugins.orders.acts:smp")
def order_smp() -> None:
    """Fill a node before the next."""


@order.command("round-robin")
@_sized
@act("seatrial.plugins.orders.acts:round_robin")
def order_round_robin() -> None:
    """Deal out ranks to the nodes in turn."""


@order.command("folded")
@_sized
@act("seatrial.plugins.orders.acts:order_folded")
def order_folded() -> None:
    """Deal out ranks to the nodes forth and back."""


@order.command("random")
@_RANKS
@_PER_NODE
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same order.")
@_WRITTEN_FOR
@act("seatrial.plugins.orders.acts:random_order")
def order_random() -> None:
    """Shuffle the ranks."""


@order.command("file")
@click.argument("file", type=click.Path(path_type=Path))
@_PER_NODE
@_WRITTEN_FOR
@act("seatrial.plugins.orders.acts:of_file")
def order_file() -> None:
    """Check an order in a file, and write it.

    FILE has the format of MPICH_RANK_ORDER: ranks, or spans such as 4-7, with commas or blanks.
    """


@order.command("best")
@click.argument("pattern", metavar="RUN|FILE|WORDS", shell_complete=complete("runs"))
@click.option(
    "-m",
    "--machine",
    help="Machine whose topology counts; without one all nodes are as far from each other.",
)
@click.option("--nodes", required=True, help="Node set, in the order of the slots.")
@click.option(
    "-N",
    "--tasks-per-node",
    "per_node",
    type=int,
    help="Ranks of a node; default: as many on each node as there can be evenly.",
)
@choice_option(
    "--by",
    of=["hop-bytes", "off-node", "link-load"],
    help="What has to be small: bytes times hops, bytes that leave their node, or bytes of the "
    "busiest link.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    help="Time for the whole search; default: 4 and one more for each 2,048 ranks.",
)
@_for("Who reads it.")
@click.pass_obj
@act("seatrial.plugins.orders.acts:best")
def order_best() -> None:
    """Write the order by which the least goes over the network.

    RUN is a run that `seatrial pattern record` recorded, FILE a pattern: who sends how much to
    whom. WORDS say a pattern that follows a rule:

    \b
    "halo 16x16x16"      a grid; with "open" not around its ends
    "transpose 64x64"    all of a row, all of a column
    "mfdn 63 BDM"        MFDn with 63 diagonals
    "irregular 4096"     a made-up irregular mesh

    stderr has the candidates and what they cost.
    """


@order.command("mfdn")
@click.argument("diagonals", type=int)
@click.argument("kind", type=click.Choice(_MFDN_KINDS))
@choice_option(
    "--numbered",
    of=_MFDN_KINDS,
    default=None,
    help="How the program numbers its ranks; default: DM, or BDM for BDM and BCM.",
)
@_PER_NODE
@_WRITTEN_FOR
@act("seatrial.plugins.orders.acts:mfdn")
def order_mfdn() -> None:
    """Order the ranks of MFDn, which share a symmetric matrix.

    DIAGONALS (n_d, odd) gives n_d (n_d + 1) / 2 ranks. KIND: DM along the diagonals of the
    triangle, CM along its columns; BDM, BCM: the same of the balanced distribution.
    """


@order.command("grid")
@click.option("-C", "major", flag_value="C", help="Ranks go up along the first dimension.")
@click.option("-R", "major", flag_value="R", help="Ranks go up along the last dimension.")
@click.option("-Z", "curve", flag_value="Z", help="Cells row after row (default).")
@click.option("-P", "curve", flag_value="P", help="Rows of cells forth and back.")
@click.option("-H", "curve", flag_value="H", help="Cells along Hilbert's curve.")
@click.option("-g", "shape", required=True, help="Lengths of the grid, such as 8,8,4.")
@click.option("-c", "cell", help="Lengths of a cell, such as 4,4,2; with -H 1 each if left out.")
@click.option("-o", "along", help="Dimensions from 1 on, in which cells go up, such as 2,1,3.")
@click.option("-m", "limit", type=int, default=0, help="Leave out ranks from this number on.")
@click.option("-N", "--per-node", type=int, help="Ranks of a node; default: those of a cell.")
@click.option("-n", "per_line", type=int, default=0, help="Ranks of a line; default: of a cell.")
@click.option("-q", "quiet", is_flag=True, help="Write no comments.")
@click.option("-s", "start", type=int, default=0, help="Number of the first rank.")
@click.option("-T", "unknown", is_flag=True, hidden=True)
@click.argument("position", required=False)
@_written_for("--machine")  # -m is the limit of grid_order
@act("seatrial.plugins.orders.acts:grid")
def order_grid() -> None:
    """Order the ranks of a grid by cells, as HPE's grid_order does.

    Its -T and coordinates are refused: what they do is in no public text.
    """


@click.group("pattern")
def pattern() -> None:
    """Record who sends how much to whom in an MPI program, and show it.

    \b
    seatrial pattern record suites/halo -m frost
    seatrial pattern show RUN
    seatrial order best RUN -m frost --nodes n[001-128] > best.order
    """


@pattern.command("record")
@selection_options
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@quiet_option
@click.pass_context
@act("seatrial.plugins.orders.acts:record")
def pattern_record() -> None:
    """Run a suite and record which rank sends how much to which.

    A library between program and MPI is built with each test by the toolchain's mpicc, and loaded
    into what $LAUNCH starts. Each run keeps its pattern, pattern.txt in its directory.
    `run.pattern: true` in a test.yaml records every run of the test.
    """


@pattern.command("show")
@click.argument("source", metavar="RUN|FILE", shell_complete=complete("runs"))
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=10, show_default=True, help="Pairs shown."
)
@format_option("text", "json")
@click.pass_obj
@act("seatrial.plugins.orders.acts:show")
def pattern_show() -> None:
    """Show a pattern: totals, pairs, share off node, calls by size.

    RUN is a recorded run's id or a unique beginning of it; FILE a pattern file.
    """
