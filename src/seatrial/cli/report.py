"""``seatrial report``: write, sign and verify the acceptance report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders
from seatrial.cli.groups import DefaultGroup
from seatrial.cli.options import name_option
from seatrial.cli.query_common import opened, tell_damaged_journal
from seatrial.errors import UsageError
from seatrial.report.sign import require_key, sign, signature_of
from seatrial.report.verify import FileFound, Verified, tags_in
from seatrial.report.verify import verify as check
from seatrial.store.schema import Store
from seatrial.units import count, show_bytes
from seatrial.verify.reading import plain_line

if TYPE_CHECKING:
    from seatrial.report.content import Report

_FORMS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
_LONGEST_NAME = 100


@click.group("report", cls=DefaultGroup, default="write")
def command() -> None:
    """Write the acceptance report of TRIAL or PLAN, sign it, or verify one.

    \b
    seatrial report plans/frost.yaml -o frost.html --sign ~/.ssh/id_ed25519
    seatrial report nightly -o nightly.md
    seatrial report verify frost.html --signers allowed_signers
    """


@command.command("write")
@click.argument("asked", nargs=-1, required=True, metavar="TRIAL|PLAN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; `-`: stdout. Default: its trials' names, or the plan's, and -report.html.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    help="Default: by the file's ending, else html.",
)
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="KEY",
    help="Sign it with this OpenSSH key: makes FILE.sig.",
)
@name_option
@click.option("--rehearsed", is_flag=True, help="Of a plan: its latest rehearsal.")
@click.pass_obj
def write(
    folders: Folders,
    /,
    asked: tuple[str, ...],
    output: Path | None,
    form: str | None,
    key: Path | None,
    name: str,
    rehearsed: bool,
) -> int:
    """Write the report. The word `write` may be left out.

    TRIAL is a tag, a unique beginning of one, or a path; PLAN is a plan's file: the report is then
    on the trials of all its components. Several trials make one report.
    """
    stdout = output is not None and str(output) == "-"
    if output is not None and not output.name:
        raise UsageError("--output: names no file; name one, such as report.html")
    if stdout and key is not None:
        raise click.UsageError("--sign: a report on stdout cannot be signed; name a file with -o")
    form = form or _form(output)
    if key is not None:
        require_key(key)
    with opened(folders) as store:
        made = _report(folders, store, asked, name, rehearsed)
    text = _text(made, form)
    if output is None:
        output = Path(f"{_stem(asked, name, made)}-report.{form}")
        _require_own(output, made)
    if stdout:
        click.echo(text, nl=False)
        return 0
    _write(output, text)
    size = show_bytes(len(text.encode()))
    said = " (rehearsed)" if made.rehearsed else ""
    click.echo(f"{output}: report {made.name} on {made.title}{said}, {size}")
    if key is not None:
        click.echo(f"{sign(output, key)}: its signature")
    elif signature_of(output).exists():
        click.echo(
            f"{signature_of(output)}: is of an earlier report; --sign makes it anew", err=True
        )
    return 0


def _report(
    folders: Folders, store: Store, asked: tuple[str, ...], name: str, rehearsed: bool
) -> Report:
    from seatrial.report.gather import gather
    from seatrial.report.planned import Planned, find
    from seatrial.trial.folder import find as find_trial

    plans = [one for one in asked if Path(one).suffix in (".yaml", ".yml")]
    if plans and len(asked) > 1:
        raise click.UsageError(f"{plans[0]}: one plan at a time, or trials by their tags")
    if plans:
        path = Path(plans[0])
        planned = find(folders.trials, path, name, rehearsed)
    elif name or rehearsed:
        raise click.UsageError("--name and --rehearsed are of a plan; a trial is named by its tag")
    else:
        planned = Planned([find_trial(folders.trials, one) for one in dict.fromkeys(asked)])
    made = gather(planned, store)
    damaged = {file.trial for file in made.files if file.damaged}
    for folder in planned.trials:
        if folder.tag in damaged:
            tell_damaged_journal(folder)
    return made


def _form(output: Path | None) -> str:
    """Return the format of a file by its suffix."""
    ending = output.suffix.lower() if output else ""
    if ending and ending not in _FORMS:
        remedy = "print the HTML to make a PDF" if ending == ".pdf" else "--format says which it is"
        raise click.UsageError(
            f"{output}: a report ends in .html, .md or .json, not {ending}; {remedy}"
        )
    return _FORMS.get(ending, "html")


def _stem(asked: tuple[str, ...], name: str, made: Report) -> str:
    """Return the name of a report's file: the common beginning of the tags of its plan's trials, or
    the names of all its trials."""
    plan = Path(asked[0])
    if plan.suffix in (".yaml", ".yml"):
        begin = name or made.plan or plan.stem
        return f"{begin}-rehearsed" if made.rehearsed else begin
    tags = [part.tag for part in made.components]
    named = "-".join(tags)
    return named if len(named) <= _LONGEST_NAME else f"{tags[0]}-and-{len(tags) - 1}-more"


def _require_own(output: Path, made: Report) -> None:
    """Raise UsageError if an unnamed output would overwrite the report of something else."""
    if not output.exists():
        return
    there, ours = tags_in(output), {file.trial for file in made.files}
    if there != ours and not (made.plan and there & ours):
        of = f"the report on {', '.join(sorted(there)[:3])}" if there else "no report of Seatrial's"
        raise UsageError(f"{output}: is {of}; remove it, or name another file with -o")


def _text(made: Report, form: str) -> str:
    from seatrial.report import content, html, markdown

    if form == "json":
        return content.as_json(made)
    return markdown.text(made) if form == "md" else html.page(made)


def _write(output: Path, text: str) -> None:
    """Write the file completely or not at all: a signed report is never left half replaced."""
    making = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        making.write_text(text, encoding="utf-8")
        making.replace(output)
    except OSError as error:
        making.unlink(missing_ok=True)
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}; name another file with -o"
        ) from error


# ---- checking -----------------------------------------------------------------------------


@command.command("verify", short_help="Verify a report, its signature and its journals.")
@click.argument("report", type=click.Path(path_type=Path))
@click.option(
    "--signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Whose signatures count: an allowed_signers file, as of ssh-keygen.",
)
@click.option(
    "--key", type=click.Path(path_type=Path), metavar="FILE", help="The one public key that counts."
)
@click.option(
    "--trials",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the trials; default: as of every command.",
)
@click.pass_obj
def verify(
    folders: Folders, report: Path, signers: Path | None, key: Path | None, trials: Path | None
) -> int:
    """Verify that REPORT is as it was signed, and that the journals behind it are unchanged.

    \b
    Exit codes:  0  signed by an accepted key; everything behind it is unchanged
                 1  the report, its signature or something behind it was changed
                 2  usage, or not a report of Seatrial
                 3  nothing is wrong, but not everything could be verified
    """
    if signers is not None and key is not None:
        raise click.UsageError("--signers and --key: one of them")
    found = check(report, trials or folders.trials, signers, key)
    click.echo(f"report      {report}, SHA-256 {found.sha256}")
    click.echo(f"signature   {_of_signature(found)}")
    for each in found.files:
        click.echo(f"{each.state:<15} {_of_file(each)}")
    click.echo(_in_all(found))
    return found.code


def _of_signature(found: Verified) -> str:
    one = found.signature
    if found.unsigned:
        return f"MISSING: there is no {signature_of(found.report).name} beside it"
    if one is None:
        return f"not checked: there is no {signature_of(found.report).name} beside it"
    if not one.good:
        return f"BAD: {plain_line(one.why)}"
    who = f" of {plain_line(one.who)}" if one.who else ""
    if found.by_key:
        return f"good, by the key {one.key}{who}"
    return (
        f"fits the report, by the key {one.key}; the owner of the key was not verified: "
        "name accepted keys by --signers or --key"
    )


def _of_file(each: FileFound) -> str:
    named = f"{each.file.trial}/{each.file.name}"
    if each.file.events is not None:
        named += f", {count(each.file.events, 'event')}"
    if each.state == "went on since":
        return f"{named}: its first {each.file.bytes:,} bytes are as they were, {each.more:,} more"
    if each.state == "as it was":
        return f"{named}, {show_bytes(each.file.bytes)}"
    if each.state == "not here":
        return f"{named}: no {each.path}; --trials names another folder"
    return f"{named}: {each.path}"


def _in_all(found: Verified) -> str:
    if found.code == 0:
        return "The report is as it was signed, and rests on these journals."
    if found.code == 3:
        return "Nothing speaks against it, but not everything could be checked: see above."
    if found.unsigned:
        return "Do not trust this report: it is not signed."
    if found.signature is not None and not found.signature.good:
        return "Do not trust this report: its signature is bad."
    return "Do not trust this report: something behind it was changed."
