"""Commands of ``seatrial accept`` by which people record what is no job: items, documents, what
happened."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders, options
from seatrial.lazy import LazyModule

if TYPE_CHECKING:
    from seatrial.cli import plan_records, ticking
    from seatrial.plan.checklist import ItemState
else:  # most of Seatrial
    plan_records = LazyModule("seatrial.cli.plan_records")
    ticking = LazyModule("seatrial.cli.ticking")


@click.command("tick")
@options.plan_options
@click.argument("item")
@click.option("--pass", "passed", is_flag=True, help="It passed.")
@click.option("--fail", "failed", is_flag=True, help="It failed.")
@options.value_option(
    "--value", "NUMBER", "The number that was read; its bounds decide.", type=options.FiniteRange()
)
@click.option("--waive", is_flag=True, help="It need not be checked; needs --comment.")
@options.by_option
@options.path_option("--document", "FILE", "Document that shows it.")
@options.comment_option
@options.again_option
def tick(
    folders: Folders,
    /,
    item: str,
    passed: bool,
    failed: bool,
    value: float | None,
    waive: bool,
    by: tuple[str, ...],
    document: Path | None,
    comment: str,
    again: str,
    **chosen: Any,
) -> int:
    """Give an item of a checklist its result, with who and when.

    An item has one result; another one replaces it only with --again, and the first is kept.

    \b
    seatrial accept tick plan.yaml 3 --pass --by "A. Smith"
    seatrial accept tick plan.yaml cooling --value 21.5 --by A --document log.pdf
    seatrial accept tick plan.yaml ups --waive --comment "in July" --by A --by B

    \b
    Exit codes:  0  recorded
                 1  another person was faster; your result does not count
                 2  it has a result, is unknown, or usage; nothing was recorded
                 3  it is left for the owner of the trial to record
    """
    if passed + failed + waive + (value is not None) != 1:
        raise click.UsageError("give one of --pass, --fail, --value and --waive")
    names = options.names_of(by)
    result: ItemState = "waived" if waive else "pass" if passed else "fail"
    answer = ticking.GivenResult(result, value, names, comment, document, again)
    return ticking.Ticking(folders, **chosen).tick(item, answer)


@click.command("evidence")
@options.plan_argument
@click.argument("document", metavar="DOCUMENT")
@click.argument("file", type=click.Path(path_type=Path))
@options.by_option
@options.text_option("--on", "DATE", "When it was signed; default: today.")
@options.comment_option
@options.again_option
def evidence(
    folders: Folders, /, path: Path, name: str, document: str, by: tuple[str, ...], **given: Any
) -> int:
    """Give a document that the plan awaits, with who signed it.

    DOCUMENT is its name in the plan (`pending: true`, or without `sha256`), FILE is the file that
    is there now. Its checksum is recorded.

    \b
    seatrial accept evidence plan.yaml burn-in.pdf reports/b.pdf --by A

    \b
    Exit codes:  0  recorded
                 1  another person was faster; your document does not count
                 2  it was given, is not awaited, cannot be read, or usage
                 3  it is left for the owner of the trial to record
    """
    file = plan_records.GivenFile(by=options.names_of(by), **given)
    return plan_records.Recording(folders, path, name).evidence(document, file)


@click.command("record")
@options.plan_argument
@click.argument("kind", type=click.Choice(["milestone", "part", "incident"]))
@click.argument("text")
@options.by_option
@options.value_option("--at", "TIME", "When: 2h (ago), 2026-11-20T14:03.", type=options.MOMENT)
@options.text_option("--nodes", "NODES", "Nodes that it is about.")
def record(
    folders: Folders,
    /,
    path: Path,
    name: str,
    text: str,
    by: tuple[str, ...],
    at: int | None,
    **about: Any,
) -> int:
    """Record a milestone, a replaced part or an incident.

    The report and the status list them with who and when.

    \b
    seatrial accept record plan.yaml milestone "phase 1 was handed over" --by A
    seatrial accept record plan.yaml part "DIMM 7" --nodes n017 --at 2h --by A
    seatrial accept record plan.yaml incident "F2 was down" --at 3h --by A

    \b
    Exit codes:  0  recorded
                 2  a fault in the plan, or usage
                 3  it is left for the owner of the trial to record
    """
    from seatrial.journal.events import PlanEntry

    entry = PlanEntry(text=text.strip(), at=at or 0, names=options.names_of(by), **about)
    return plan_records.Recording(folders, path, name).entry(entry)


COMMANDS = (tick, evidence, record)
