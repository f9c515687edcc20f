"""Tell where a folder of trials lets others put one trial in the place of another."""

import contextlib
import functools
from pathlib import Path

import click

from seatrial.file_origin import origin_of
from seatrial.files import opened_folder
from seatrial.verify.reading import plain_line


@functools.cache
def tell_shared(trials: Path) -> None:
    """Tell, once, that others may rename and replace the trials of a folder, and what ends that."""
    with contextlib.suppress(OSError), opened_folder(trials, follow=True) as folder:
        if origin_of(folder, trials).loose:
            where = plain_line(str(trials))
            click.echo(
                f"seatrial: {where}: whoever may write there can put another trial in the place of "
                f"yours; `chmod +t {where}` leaves that to you",
                err=True,
            )
