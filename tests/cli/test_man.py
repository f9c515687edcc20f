from __future__ import annotations

import click

from seatrial.cli import all_commands, seatrial
from seatrial.cli.about import man_page, pages
from tests.programs import Workplace

REQUESTS = {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi", ".nh", ".ad"}


def test_every_command_has_a_page(place: Workplace) -> None:
    done = place.seatrial("man", "share")
    assert done.code == 0, done.said
    written = {path.name for path in (place.folder / "share/man1").iterdir()}
    assert f"{len(written)} pages in share/man1" in done.out
    assert {f"seatrial-{name}.1" for name in all_commands()} < written
    assert {"seatrial.1", "seatrial-accept-status.1", "seatrial-report-verify.1"} < written
    page = (place.folder / "share/man1/seatrial-accept-status.1").read_text()
    assert r"seatrial\-accept(1)" in page


def test_a_folder_that_cannot_be_written_is_named(place: Workplace) -> None:
    (place.folder / "file").write_text("")
    done = place.seatrial("man", "file")
    assert done.code == 2
    assert "file/man1: cannot be written: " in done.err


def test_no_line_of_a_help_is_a_request_of_roff() -> None:
    for page in pages(seatrial):
        lines = man_page(page, ()).splitlines()
        assert {line.split()[0] for line in lines if line[:1] in (".", "'")} <= REQUESTS, page.name


def test_a_help_becomes_roff_as_it_is_written() -> None:
    @click.command()
    @click.option("--size", metavar="N", help="How many; 'auto' for all.")
    def one(size: str) -> None:
        """Count things. Then stop.

        .bashrc is read\\n first.

        \b
        seatrial one   ~/x
        .5 is a half
        """

    (page,) = pages(one, "seatrial one")
    text = man_page(page, ["seatrial"])
    assert r"seatrial\-one \- Count things" in text
    assert "\n.B \\-\\-size N\nHow many; 'auto' for all.\n" in text
    assert "\n\\&.bashrc is read\\en first.\n" in text
    assert "\n.nf\nseatrial one   \\(ti/x\n\\&.5 is a half\n.fi\n" in text
    assert text.endswith(".SH SEE ALSO\nseatrial(1)\n")
