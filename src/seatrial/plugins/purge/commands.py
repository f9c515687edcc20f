"""The command ``purge``."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    MOMENT,
    Parsed,
    choice_option,
    format_option,
    json_option,
    list_option,
    path_option,
    text_option,
    together,
    value_option,
)
from seatrial.plugins.purge.plan_file import BATCH, FATES, plan_path


class _PlanFile(click.ParamType[Path]):
    """A plan: by its name in the folder of plans, or by its path."""

    name = "plan"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        assert ctx is not None
        return plan_path(ctx.obj.trials, str(value))


_plan = click.argument("plan", metavar="PLAN", type=_PlanFile())
_top = value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=20)
_shown = together(
    _top,
    value_option("--unit", "UNIT", "Unit of bytes, such as GiB or TB; default: by their size.",
                 type=Parsed("seatrial.plugins.purge.pages:check_unit"), default=""),
    format_option("table", "json", "csv"),
)  # fmt: skip


@click.group("purge")
def purge() -> None:
    """Remove old files by a policy: purge.yaml.

    First `plan`, which removes nothing, then `do` with a consent. `undo` puts back what the policy
    moved aside, `expire` removes it for good; `audit` tells what became of each file.
    """


@purge.command("plan")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False))
@text_option("-o", "--output", "target", "PLAN", "Name of the plan, or its file; default: by date.")
@value_option("--now", "TIME", "Rehearse: ages as of TIME.", type=MOMENT, default=0)
@value_option(
    "--batch", "N", "Entries between two records of the audit.",
    type=click.IntRange(1, 1 << 16), default=BATCH, show_default=True,
)  # fmt: skip
@json_option
@click.pass_obj
@act("seatrial.plugins.purge.command_acts:plan")
def purge_plan() -> None:
    """Walk the roots of POLICY and write what is to be removed.

    A name without a slash is that of a plan in the folder of the trials. Nothing is removed. Exits
    1 if something could not be read: it is named, and not in the plan.
    """


@purge.command("do")
@_plan
@list_option("--consent", "consents", "NAME", "Who agrees that it is removed; as often as needed.")
@json_option
@click.pass_obj
@act("seatrial.plugins.purge.command_acts:do")
def purge_do() -> None:
    """Remove, or move aside, what PLAN takes.

    Each file is compared with PLAN right before: one that was used or changed since stays. Exits 1
    if there were errors, or if it stopped early: then `resume` goes on.
    """


@purge.command("resume")
@_plan
@json_option
@click.pass_obj
@act("seatrial.plugins.purge.command_acts:resume")
def purge_resume() -> None:
    """Go on with the act of PLAN that was killed or stopped."""


@purge.command("undo")
@_plan
@list_option("--path", "paths", "PATH", "Only this file, or what is below this folder.")
@list_option("--owner", "owners", "USER", "Only files of this user, by name or uid.")
@json_option
@act("seatrial.plugins.purge.command_acts:undo")
def purge_undo() -> None:
    """Put back what PLAN moved aside.

    A file whose name was taken since stays aside, and is told; missing folders are made again.
    Exits 1 if a file was not put back. Where the audit is damaged, what lies aside comes back by
    PLAN and the disk; exits 3 if it is not known what became of other files.
    """


@purge.command("expire")
@_plan
@json_option
@act("seatrial.plugins.purge.command_acts:expire")
def purge_expire() -> None:
    """Remove for good what PLAN moved aside.

    Only when it was kept as long as `aside` of the policy says; the consent was that of `do`.
    """


@purge.command("audit")
@_plan
@click.option("--files", is_flag=True, help="A line for each entry: what, when, its path.")
@click.option("--fate", type=click.Choice(list(FATES)), help="Only entries of this letter.")
@json_option
@act("seatrial.plugins.purge.command_acts:audit")
def purge_audit() -> None:
    """Tell what became of what PLAN takes, by its audit.

    The letters: r removed, b removed by an act that was killed, a moved aside, u put back, c
    changed since the plan, g gone before, k open, e error, n not tried, ? not known, as the audit
    is damaged: then it exits 3.
    """


@purge.command("show")
@_plan
@choice_option(
    "--by",
    of=["owner", "folder", "age", "class", "rule", "kind", "root", "file"],
    default=None,
    help="Sums by this; file: the largest.",
)
@text_option("--owner", "USER", "Only files of this user, by name or uid.")
@value_option(
    "--depth", "N", "Folders of so many levels below the root; what is kept is left out.",
    type=click.IntRange(1, 20), default=1,
)  # fmt: skip
@_shown
@act("seatrial.plugins.purge.command_acts:show")
def purge_show() -> None:
    """Show what a plan takes and keeps, and by which rule."""


@purge.command("why")
@_plan
@click.argument("path", metavar="PATH")
@format_option("table", "json", "csv")
@act("seatrial.plugins.purge.command_acts:why")
def purge_why() -> None:
    """Show why a plan takes or keeps one file, and what became of it.

    A file that the plan does not name is judged as it is now, at the time of the plan.
    """


@purge.command("mail")
@_plan
@text_option("--owner", "USER", "Only to this user, by name or uid.")
@click.option("--text", "as_text", is_flag=True, help="Print the mails.")
@path_option("--write", "FOLDER", "Write a mail and a list for each owner to this folder.")
@click.option("--send", is_flag=True, help="Send the mails by the `command` of the policy.")
@text_option("--told", "HOW", "Send nothing: record that owners were told by this other way.")
@click.option("--again", is_flag=True, help="Also those whose mail may or may not have been sent.")
@_top
@format_option("table", "json", "csv")
@act("seatrial.plugins.purge.command_acts:purge_mail")
def purge_mail() -> None:
    """Tell owners which of their files a plan names.

    Without --send or --told nothing is sent and nothing recorded. With `warn` in the policy, files
    are taken only by a plan that is made so long after their owner was told. Nobody is told twice.
    """


@purge.command("owners")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@_shown
@act("seatrial.plugins.purge.command_acts:purge_owners")
def purge_owners() -> None:
    """Show what each owner has on a file system, whatever its age.

    To tell all owners before it is made anew, write `reformat: DATE` in a purge.yaml in place of
    `age`: its plan names every file, takes none, and `purge mail` sends the lists.
    """


@purge.command("list")
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.plugins.purge.command_acts:purge_list")
def purge_list() -> None:
    """List plans: what was done, when, by whom, with whose consent."""


@purge.command("check")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False))
@value_option("--at", "TIME", "Whether files may be removed then; default: now.", type=MOMENT)
@click.pass_obj
@act("seatrial.plugins.purge.command_acts:check")
def purge_check() -> None:
    """Check a purge.yaml with its lists, and whether it may act now."""
