"""``seatrial report sign`` and ``seatrial report verify``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from seatrial.account import user_name
from seatrial.cli import Folders
from seatrial.escaping import plain_line
from seatrial.execute.kept_files import MAX_BYTES
from seatrial.show.report.outputs import OutputsFound
from seatrial.show.report.sign import (
    Asked,
    Checked,
    FileFound,
    Verified,
    based_on,
    sign,
    signature_of,
    signatures_that_do_not_fit,
)
from seatrial.show.report.sign import verify as check
from seatrial.units import count, show_bytes

MAX_OUTPUTS = 20  # changed outputs of a trial that are named
_WHY_NOT = {
    "changed": "its journal was changed",
    "cut": "its journal was cut",
    "not here": "its journal is not here",
}
_UNREAD = "its journal or its trial.json cannot be read"


def report_sign(report: Path, key: Path, name: str | None) -> int:
    """Do ``seatrial report sign``; return the exit code."""
    _, decision = based_on(report.read_bytes())
    unfit = signatures_that_do_not_fit(report)
    signature = sign(report, key, user_name() if name is None else name)
    click.echo(f"{signature}: signs {report}")
    for path in unfit:
        said = "did not fit the report as it is now, and was replaced"
        if path != signature:
            said = "does not fit the report as it is now: it was changed after it was signed so"
        click.echo(f"seatrial: {path}: {said}", err=True)
    if decision:
        click.echo(f"decision    {plain_line(decision)}")
    else:
        click.echo(
            "decision    none in it: `seatrial report ... --decision` writes one into a report"
        )
    return 0


def report_verify(
    folders: Folders,
    report: Path,
    signers: Path | None,
    key: Path | None,
    names: tuple[str, ...],
    trials: Path | None,
    documents: Path | None,
    no_outputs: bool,
) -> int:
    """Do ``seatrial report verify``; return the exit code."""
    if signers is not None and key is not None:
        raise click.UsageError("--signers and --key: one of them")
    if names and signers is None:
        raise click.UsageError("--require: names of which file? Give --signers")
    question = Asked(signers, key, tuple(dict.fromkeys(names)), not no_outputs, documents)
    verified = check(report, trials or folders.trials, question)
    click.echo(f"report      {plain_line(str(report))}, SHA-256 {verified.sha256}")
    for line in _lines(verified):
        click.echo(line)
    if no_outputs:
        click.echo("not checked     outputs of runs: --no-outputs")
    click.echo(_in_all(verified))
    return verified.code


def _lines(verified: Verified) -> Iterator[str]:
    """Yield what was found of a report's decision, its signatures and what is behind it."""
    yield f"decision    {plain_line(verified.decision) or 'none in it'}"
    for line in _signatures(verified):
        yield f"signature   {line}"
    for each in verified.files:
        yield f"{each.state:<15} {_of_file(each)}"
    for one in verified.outputs:
        yield from _outputs(one)
    for each in verified.without_outputs:
        reason = _WHY_NOT.get(each.state, _UNREAD)
        yield f"{'not checked':<15} outputs of the runs of {each.file.trial}: {reason}"


def _signatures(verified: Verified) -> Iterator[str]:
    for one in verified.signatures:
        yield f"{one.path.name}: {_of_signature(one, verified.asked.by_key)}"
    there = signature_of(verified.report).name
    if not verified.signatures:
        state = "MISSING" if verified.asked.by_key else "not checked"
        yield f"{state}: there is no {there} beside it, and no {there}.NAME"
    for name in verified.missing:
        own = " with a key of its own" if name in verified.shared else ""
        yield f"MISSING: none by {plain_line(name)}{own}"


def _of_signature(checked: Checked, by_key: bool) -> str:
    if checked.state == "bad":
        return f"BAD: {plain_line(checked.reason)}"
    if checked.state == "unknown":
        return f"UNKNOWN: {plain_line(checked.reason)}"
    if not by_key:
        return (
            f"fits the report, by the key {checked.key}; the owner of the key was not verified: "
            "name accepted keys by --signers or --key"
        )
    names = [f"any of {name}" if set(name) & set("*?") else name for name in checked.names]
    who = f" of {plain_line(' or '.join(names))}" if names else ""
    return f"good, by the key {checked.key}{who}"


def _of_file(each: FileFound) -> str:
    named = plain_line(each.file.shown)
    own = not each.file.document and each.state not in ("as it was", "went on since", "added to")
    if own:
        named = plain_line(str(each.path))  # it ends with the name
    if each.file.events is not None:
        named += f", {count(each.file.events, 'event')}"
    if each.state in ("went on since", "added to"):
        text = f"{named}: its first {each.file.bytes:,} bytes are as they were, {each.more:,} more"
        return f"{text} {each.reason}".rstrip()
    if each.state == "as it was":
        return f"{named}, {show_bytes(each.file.bytes)}"
    if each.state == "not here":
        option = "--documents" if each.file.document else "--trials"
        place = named if own else f"{named}: no {each.path}"
        return f"{place}; {option} names another folder"
    return named if own else f"{named}: {each.path}"


def _outputs(one: OutputsFound) -> Iterator[str]:
    """Yield lines about the outputs of a trial's runs."""
    if one.unchanged:
        yield f"{'as it was':<15} {count(one.unchanged, 'output')} of the runs of {one.trial}"
    order = {"changed": 0, "cannot be read": 1, "not here": 2}
    others = sorted(one.others, key=lambda each: order.get(each.state, 0))
    for each in others[:MAX_OUTPUTS]:
        yield f"{each.state:<15} {plain_line(str(each.path))}, run {each.run_id}"
    if len(others) > MAX_OUTPUTS:
        changed = sum(each.state == "changed" for each in others[MAX_OUTPUTS:])
        more = f"{len(others) - MAX_OUTPUTS} more outputs of {one.trial}"
        yield f"{'and':<15} {more} are not as they were or not here, {changed} of them changed"
    if one.removed:
        what = f"{count(one.removed, 'output')} of the runs of {one.trial}"
        yield f"{'not checked':<15} {what}: removed, as `keep` says"
    if one.too_large:
        what = f"{count(one.too_large, 'output')} of the runs of {one.trial}"
        limit = show_bytes(MAX_BYTES)
        yield f"{'not checked':<15} {what}: too large to be judged, or larger than {limit}"
    if one.without:
        what = f"outputs of {count(one.without, 'run')} of {one.trial}"
        yield f"{'not checked':<15} {what}: there are no checksums of them"


def _in_all(verified: Verified) -> str:
    if verified.code == 0:
        return "The report is as it was signed, and so is what it is based on, as listed above."
    if verified.code == 3:
        return "Nothing speaks against it, but not everything could be checked: see above."
    if any(one.state == "bad" for one in verified.signatures):
        return "Do not trust this report: a signature is bad."
    if verified.tampered:
        return "Do not trust this report: something behind it was changed."
    if not verified.signatures:
        return "Do not trust this report: it is not signed."
    return "Do not trust this report: a signature that is asked for is missing."
