"""``seatrial order``: rank orders, as MPI libraries and Slurm read them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import choice_option, together

_MFDN_KINDS = ("DM", "CM", "BDM", "BCM")
SCORE_KINDS = ("hop-bytes", "off-node", "link-load")
_TARGETS = ("cray", "slurm", "openmpi", "mpich")


@click.group("order")
def command() -> None:
    """Write a rank order: which rank runs in which slot of the nodes.

    \b
    seatrial order folded -n 64 -N 16 > MPICH_RANK_ORDER
    seatrial order grid -R -g 8,8,4 -c 4,4,2 > MPICH_RANK_ORDER
    seatrial order smp -n 64 -N 16 --for slurm --nodes n[1-4] > hosts

    How the file is given to the library is said on stderr.
    """


def _for(about: str) -> Callable[..., Any]:
    return choice_option("--for", "target", of=_TARGETS, help=about)


_written_for = together(
    _for("Who reads it; all but cray need --nodes."),
    click.option("--nodes", default="", help="Node set, in the order of the slots."),
)
_PER_NODE = click.option(
    "-N", "--per-node", type=int, required=True, help="Ranks of a node; the last may have fewer."
)
_RANKS = click.option("-n", "--ranks", type=int, required=True, help="Number of ranks.")
_sized = together(_RANKS, _PER_NODE, _written_for)


# ---- by number of ranks -------------------------------------------------------------------


@command.command("smp")
@_sized
@action
def smp() -> None:
    """Fill a node before the next."""


@command.command("round-robin")
@_sized
@action
def round_robin() -> None:
    """Deal out ranks to the nodes in turn."""


@command.command("folded")
@_sized
@action
def folded() -> None:
    """Deal out ranks to the nodes forth and back."""


@command.command("random")
@_RANKS
@_PER_NODE
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same order.")
@_written_for
@action
def random_order() -> None:
    """Shuffle the ranks."""


@command.command("file")
@click.argument("file", type=click.Path(path_type=Path))
@_PER_NODE
@_written_for
@action
def of_file() -> None:
    """Check an order in a file, and write it.

    FILE has the format of MPICH_RANK_ORDER: ranks, or spans such as 4-7, with commas or blanks.
    """


@command.command("best")
@click.argument("pattern", metavar="RUN|FILE|WORDS", shell_complete=complete.runs)
@click.option("-m", "--machine", help="Machine whose topology counts.")
@click.option("--nodes", required=True, help="Node set, in the order of the slots.")
@click.option(
    "-N",
    "--tasks-per-node",
    "per_node",
    type=int,
    help="Ranks of a node; default: as many on each node as there can be evenly.",
)
@choice_option("--by", of=SCORE_KINDS, help="What has to be small.")
@click.option("--seconds", type=click.FloatRange(0.1), help="Time for the whole search.")
@_for("Who reads it.")
@click.pass_obj
@action
def best() -> None:
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


@command.command("mfdn")
@click.argument("diagonals", type=int)
@click.argument("kind", type=click.Choice(_MFDN_KINDS))
@choice_option(
    "--numbered",
    of=_MFDN_KINDS,
    default=None,
    help="How the program numbers its ranks; default: DM, or BDM for BDM and BCM.",
)
@_PER_NODE
@_written_for
@action
def mfdn() -> None:
    """Order the ranks of MFDn, which share a symmetric matrix.

    DIAGONALS (n_d, odd) gives n_d (n_d + 1) / 2 ranks. KIND: DM along the diagonals of the
    triangle, CM along its columns; BDM, BCM: the same of the balanced distribution.
    """


@command.command("grid")
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
@_written_for
@action
def grid() -> None:
    """Order the ranks of a grid by cells, as HPE's grid_order does.

    Its -T and coordinates are refused: what they do is in no public text.
    """
