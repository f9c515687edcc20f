"""``seatrial compat template``: job scripts for applications that want a cluster of hosts."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.runs import compat

TEMPLATES = ("mpi", "hybrid", "gaussian", "serial", "kpoints", "replica", "namd", "espresso")


def text_of(name: str) -> str:
    """Return the job script of a template."""
    return (Path(compat.__file__).parent / "templates" / f"{name}.sh").read_text()


@click.command("template")
@click.argument("name", type=click.Choice(TEMPLATES))
def template(name: str) -> None:
    """Print a job script whose comments say what to change.

    \b
    mpi       an MPI program, by Open MPI, MPICH or Intel MPI over rsh
    hybrid    MPI between nodes, OpenMP within
    gaussian  Gaussian (g09, g16) with Linda
    serial    a farm of serial commands on all cores
    kpoints   WIEN2k, k-points in parallel by .machines
    replica   replica exchange over sockets
    namd      NAMD or another program of Charm++, by a nodelist
    espresso  Quantum ESPRESSO with its k-points in pools, by MPI

    \b
    seatrial compat template gaussian > job.sh && sbatch job.sh input.com
    """
    click.echo(text_of(name), nl=False)
