"""``seatrial report sign`` and ``seatrial report verify``."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import list_option, path_option


@click.command("sign", short_help="Sign a report; several people may.")
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="KEY",
    required=True,
    help="Your OpenSSH key: the private one, or the public one of an agent or token.",
)
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="Your name or side, as in the file of allowed signers. Default: your user name.",
)
@action
def sign_command() -> None:
    """Sign REPORT: makes REPORT.sig.NAME beside it. Other people's signatures stay.

    \b
    seatrial report sign frost.html --key ~/.ssh/id_ed25519 --as vendor
    """


@click.command("verify", short_help="Verify a report, its signatures and what is behind it.")
@click.argument("report", type=click.Path(path_type=Path))
@path_option(
    "--signers", "FILE", "Whose signatures count: an allowed_signers file, as of ssh-keygen."
)
@path_option("--key", "FILE", "The one public key that counts.")
@list_option(
    "--require",
    "names",
    "NAME",
    "A name of the signers' file that must have signed; may be repeated.",
)
@path_option("--trials", "DIR", "Folder of the trials; default: as of every command.")
@path_option(
    "--documents",
    "DIR",
    "Folder of the documents of evidence; default: that of the plan, or of the report.",
)
@click.option("--no-outputs", is_flag=True, help="Do not read the files of the runs.")
@click.pass_obj
@action
def verify_command() -> None:
    """Verify that REPORT is as it was signed, and that what is behind it is unchanged: journals,
    records, notes, documents of evidence, and the outputs of the runs.

    \b
    Exit codes:  0  signed by all that are asked for; nothing behind it changed
                 1  the report, a signature or something behind it was changed, or
                    a signature that is asked for is missing
                 2  usage, or not a report of Seatrial
                 3  nothing is wrong, but not everything could be verified
    """
