"""The commands of ``seatrial usage``: what others ran on a machine."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    MOMENT,
    FiniteRange,
    Parsed,
    choice_option,
    complete,
    drawn_format_option,
    format_option,
    list_option,
    machine_named,
    path_option,
    text_option,
    together,
    value_option,
)
from seatrial.errors import suggest
from seatrial.model.moments import zone_of
from seatrial.units import seconds


class _Commands(click.Group):
    """A group whose commands are shown in their order, and which tells the nearest of a word that
    is none."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            remedy = suggest(args[0], self.commands) or f"there are {', '.join(self.commands)}"
            context.fail(f"no command {args[0]!r}; {remedy}")
        return super().resolve_command(context, args)


class _Questions(_Commands):
    """A group with a default command: ``usage --by size`` is ``usage ask --by size``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Insert ``ask`` where no command is named."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["ask", *args]
        return super().parse_args(context, args)


@click.group("usage", cls=_Questions)
def usage() -> None:
    """Tell what others ran on a machine, whoever submitted it.

    Jobs come in by `seatrial usage import`, and are kept below the folder of the trials.
    """


@usage.group("import", cls=_Commands, short_help="Bring in the jobs that others ran.")
def import_() -> None:
    """Bring in the jobs that others ran on a machine, from the batch system or from a file.

    An import can be repeated: a job is never counted twice, and what changed since is corrected.
    """


_import_options = together(
    machine_named("Machine on which the jobs ran, by name or file."),
    value_option(
        "--since",
        "TIME",
        "From then on; default: where the last import ended, of a file all of it.",
        type=MOMENT,
    ),
    value_option("--until", "TIME", "Before then; default: now.", type=MOMENT),
    click.option(
        "--anonymous", is_flag=True, help="Keep no names of users: a keyed hash stands for each."
    ),
    click.pass_obj,
)
"""What each import takes. They are passed on to `bring_in` as they are."""


_PAIR = Parsed("seatrial.plugins.usage.sources.table:parse_pair")


@import_.command("sacct", short_help="Slurm's accounting, or a saved output of sacct.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read an output of sacct -P that was saved with its header (or .gz).",
)
@value_option(
    "--timezone",
    "NAME",
    "Time zone of a saved output; default: that of this host.",
    type=Parsed(zone_of),
    default=None,
)
@value_option("--cluster", "NAME", "Cluster, if the database has several.", default="")
@click.option(
    "--steps/--no-steps",
    default=True,
    help="Whether the steps of jobs are read: programs, CPU time, energy.",
)
@click.option(
    "--executable-from",
    type=click.Choice(["step", "admin-comment", "comment"]),
    multiple=True,
    help="What tells the program; several in their order.",
)
@value_option(
    "--cpus-per-core",
    "N",
    "CPUs of Slurm in a core; default: `threads_per_core` of the machine file, or 1.",
    type=click.IntRange(1, 16),
)
@_import_options
@act("seatrial.plugins.usage.sources.sacct:import_sacct")
def import_sacct() -> None:
    """Import the jobs of Slurm's accounting.

    sacct is asked for one span of time after another. Jobs that had not ended at the last import
    are corrected.

    \b
    seatrial usage import sacct -m frost --since 30d
    seatrial usage import sacct -m frost
    sacct -aDP --noconvert --delimiter='<|>' -S 2026-01-01 -o ALL > saved.txt
    seatrial usage import sacct -m frost --file saved.txt
    """


@import_.command("swf", short_help="A log in the Standard Workload Format (*.swf).")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@value_option(
    "--start",
    "TIME",
    "When its times begin, such as 2001-05-01T00:00+00:00, of a log that does not say so.",
    type=MOMENT,
    default=0,
)
@click.option(
    "--cores-per-node",
    type=click.IntRange(min=1),
    help="Count nodes: jobs have whole nodes with so many processors.",
)
@_import_options
@act("seatrial.plugins.usage.sources.swf:import_swf")
def import_swf() -> None:
    """Import a log in the Standard Workload Format.

    PATH is such a log (version 2.2), which may be compressed by gzip. Lines that cannot be read are
    kept aside and told. Users, groups and programs are the log's numbers; queues have the names
    that its comments give them.

    \b
    seatrial usage import swf CTC-SP2-1996-3.1-cln.swf.gz -m ctc
    """


@import_.command("csv", short_help="A table of jobs of any tool.")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@path_option("--map", "map_file", "FILE", "What the options say, as a file: `seatrial schema`.")
@list_option("--column", "columns", "FIELD=HEADING", "Column of a field of a job.", type=_PAIR)
@list_option(
    "--unit", "units", "FIELD=UNIT", "Unit of a span (s, min, h, d) or energy.", type=_PAIR
)
@list_option("--state", "states", "WORD=STATE", "State that a word of the table is.", type=_PAIR)
@text_option("--zone", "ZONE", "Time zone of times that have none, such as Europe/Berlin.")
@text_option("--time", "FORM", "Form of times: %d.%m.%Y %H:%M, seconds, milliseconds.")
@text_option(
    "--delimiter", "CHARACTER", "What stands between cells, or `tab`; default: , ; | or a tab."
)
@_import_options
@act("seatrial.plugins.usage.sources.table:import_table")
def import_csv() -> None:
    """Import a table of jobs of any tool.

    PATH is a CSV file (or with tabs, semicolons or bars), which may be compressed by gzip; its
    first line names the columns. Fields of a job are: job, submitted, eligible, started, ended,
    wait, elapsed, suspended, limit, cpu, nodes, cores, gpus, exit_code, signal, attempt, energy,
    state, user, account, queue, name, executable, reservation, node_list, reason, cluster. Each
    row needs job and submitted. Rows that cannot be read are kept aside and told.

    \b
    seatrial usage import csv jobs.csv -m hopper --zone America/Los_Angeles \\
        --column job=JobID --column submitted=Submit --unit limit=min
    seatrial usage import csv jobs.csv -m hopper --map mapping.yaml
    """


@import_.command("pbs", short_help="An accounting log of PBS or Torque.")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@value_option(
    "--timezone",
    "NAME",
    "Time zone of the log; default: as its records show it.",
    type=Parsed(zone_of),
    default=None,
)
@_import_options
@act("seatrial.plugins.usage.sources.pbs:import_pbs")
def import_pbs() -> None:
    """Import an accounting log of PBS Pro, OpenPBS or Torque.

    PATH is the folder with a file for each day, or one such file; each may be compressed (.gz,
    .bz2, .xz). The next import goes on where the last one ended, in the middle of a day, too.

    \b
    seatrial usage import pbs /var/spool/pbs/server_priv/accounting -m frost
    seatrial usage import pbs 20260131.gz -m frost
    """


@import_.command("gridengine", short_help="The accounting of Grid Engine.")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@_import_options
@act("seatrial.plugins.usage.sources.gridengine:import_gridengine")
def import_gridengine() -> None:
    """Import the accounting file of Grid Engine.

    PATH is SGE_ROOT/SGE_CELL/common/accounting, or a folder that has it and the files that it was
    rotated to. Jobs are in it once they have ended. The next import goes on where the last one
    ended, also if the file was rotated since.

    \b
    seatrial usage import gridengine $SGE_ROOT/default/common/accounting -m frost
    """


# ---- questions -----------------------------------------------------------------------------------

_EDGES = Parsed("seatrial.plugins.usage.acts:parse_edges")
_edges_option = value_option(
    "--edges",
    "SIZES",
    "Largest sizes of the classes of `size` and `nodes`; default: powers.",
    type=_EDGES,
    default="",
)
_asked_options = together(
    text_option(
        "-m",
        "--machine",
        "NAME",
        "Only of this machine; default: all that are known.",
        shell_complete=complete("machines"),
    ),
    text_option(
        "--since",
        "TIME",
        "What was used from then on: 2011-03, 2011-03-15, 30d; on the clock of --zone.",
    ),
    text_option("--until", "TIME", "What was used before then."),
    list_option(
        "--where",
        "where",
        "NAME=VALUE",
        "Only jobs with this word, such as application=g09 or queue!=debug; `,` for several, `*` "
        "for any text. May be repeated: all must hold.",
    ),
    choice_option("--unit", of=["core-hours", "node-hours"], help="What is counted of jobs."),
    path_option("--applications", "FILE", "Rules for applications, in place of the machine's."),
    path_option("--fields", "FILE", "Fields of science, in place of the machine's file."),
    value_option(
        "--zone",
        "ZONE",
        "Time zone of months, such as UTC; default: this host's.",
        type=Parsed(zone_of),
        default=None,
    ),
    value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=20),
    drawn_format_option,
    click.pass_obj,
)
"""What all questions take: they are passed to `asked_of` as they are."""


@usage.command("ask", short_help="Tell what others used; by default.")
@list_option(
    "--by",
    "by",
    "NAME",
    "What jobs are told apart by: month, size, nodes, user, account, field, application, mode, "
    "queue, node-kind, machine, state, cause; two with a comma, such as month,size. "
    "Default: month.",
)
@choice_option(
    "--of",
    of=["hours", "jobs", "users", "waits", "failures", "energy"],
    help="What is told of them.",
)
@_edges_option
@_asked_options
@act("seatrial.plugins.usage.acts:ask")
def ask() -> None:
    """Tell what others used: hours, jobs, users, waits, failures, energy.

    Its name can be left out: `seatrial usage --by size`. Running jobs count until their machine was
    imported last. Suspended time does not count.

    \b
    seatrial usage --by month,size --edges 1,512,8192
    seatrial usage --by application --of users -m hopper --since 2011-01-01
    seatrial usage --by mode --where application=g09 --of failures
    """


@usage.command("report", short_help="Write a year as one file.")
@click.argument("period", metavar="YEAR|MONTH")
@machine_named("Machine, by name or file.")
@path_option(
    "-o",
    "--output",
    "FILE",
    "File to write, .html or .md; `-`: HTML to stdout. Default: usage-MACHINE-YEAR.html.",
)
@value_option(
    "--edges",
    "SIZES",
    "Largest sizes of the classes of cores, such as 1,512,8192; default: powers.",
    type=_EDGES,
    default="",
)
@value_option(
    "--zone",
    "ZONE",
    "Time zone of months, such as UTC; default: this host's.",
    type=Parsed(zone_of),
    default=None,
)
@click.pass_obj
@act("seatrial.plugins.usage.report:report")
def report() -> None:
    """Write what others ran in a year, or a month, as one file.

    Hours by size, field, application, mode and queue, users, waits, failures, energy, and what is
    missing, as charts and tables. An HTML file loads nothing, and prints on paper. Names of people
    are in it only if the machine's file says so.

    \b
    seatrial usage report 2010 -m hopper -o usage-2010.html
    seatrial usage report 2010-03 -m hopper -o march.md
    """


@usage.command("imports", short_help="Show what was imported, and the gaps.")
@text_option("-m", "--machine", "NAME", "Only of this machine.")
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.plugins.usage.importing:print_imports")
def imports() -> None:
    """Show what was imported: spans of time, sources, jobs, and the gaps between.

    Of a gap nobody knows what ran: import it, or answers that touch it say so.

    \b
    seatrial usage imports -m hopper
    """


@usage.command("waits", short_help="Tell how long jobs like yours wait.")
@value_option(
    "--size",
    "SIZE",
    "Jobs of about this size: 3 (nodes), 3nodes, 72cores; default: any.",
    type=Parsed("seatrial.plugins.usage.acts:size_in_nodes"),
)
@value_option(
    "--walltime",
    "TIME",
    "Jobs with about this time limit, such as 36h; default: any.",
    type=Parsed(seconds),
)
@value_option(
    "--within",
    "FACTOR",
    "How many times as large or small, long or short, a job may be.",
    type=FiniteRange(1, 1000),
    default=2.0,
    show_default=True,
)
@choice_option(
    "--from",
    "ready",
    of=["eligible", "submitted"],
    help="From when on a job waits: it could start, or came.",
)
@text_option("--by", "NAME", "What jobs are told apart by; default: machine.")
@_asked_options
@act("seatrial.plugins.usage.acts:waits")
def waits() -> None:
    """Tell how long jobs like yours wait: medians, percentiles, intervals.

    Jobs that still wait count, too: as waiting for at least so long.

    \b
    seatrial usage waits --size 3 --walltime 36h --by machine
    seatrial usage waits --size 512cores --by month -m hopper
    """


@usage.command("share", short_help="Tell the share above a size.")
@value_option(
    "--above",
    "SIZE",
    "Jobs of more than this: 8192cores, 682nodes. A job of exactly this size is not above it.",
    type=Parsed("seatrial.plugins.usage.acts:size_in_cores"),
    required=True,
)
@text_option("--by", "NAME", "What jobs are told apart by; default: machine.")
@_asked_options
@act("seatrial.plugins.usage.acts:share")
def share() -> None:
    """Tell which share of the hours were of jobs above a size.

    \b
    seatrial usage share --above 8192cores -m hopper
    seatrial usage share --above 682nodes --by month --unit node-hours
    """


@usage.command("coverage", short_help="Tell what a suite's tests stand for.")
@click.argument("suite", metavar="SUITE")
@value_option(
    "--within",
    "FACTOR",
    "How many times as many cores, or as few, a test stands for.",
    type=FiniteRange(1, 1000),
    default=2.0,
    show_default=True,
)
@_edges_option
@_asked_options
@act("seatrial.plugins.usage.acts:coverage")
def coverage() -> None:
    """Tell which share of the hours the tests of SUITE stand for, and what to add first.

    A test stands for jobs of its application (`app`) of about its size. Its cases are those for the
    machine that -m names, or for this host.

    \b
    seatrial usage coverage suites/acceptance -m hopper
    """


# ---- charges and incidents -----------------------------------------------------------------------

_FILE = click.Path(path_type=Path, dir_okay=False)

_common = together(
    click.option(
        "-m", "--machine", default="", shell_complete=complete("machines"),
        help="Machine, by name or file; default: all that have jobs.",
    ),
    click.option(
        "--charges", "charges_file", type=_FILE, metavar="FILE",
        help="A charges.yaml in place of the machine's.",
    ),
    value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=30),
    format_option("table", "json", "csv"),
    click.pass_obj,
)  # fmt: skip


@usage.command("charges", short_help="What jobs are charged, and why.")
@text_option("--by", "NAME[,NAME]", "user, account, month, queue, size, ...; default: account.")
@value_option("--since", "TIME", "Jobs that ended since: 30d, 2012-01-01.", type=MOMENT, default=0)
@value_option("--until", "TIME", "Jobs that ended before then.", type=MOMENT, default=0)
@text_option("--job", "ID", "How the charge of this job is made, step by step.")
@_common
@act("seatrial.plugins.usage.acts:charges")
def charges() -> None:
    """Show what jobs are charged, by user, account, month or queue.

    A charge is core-hours or node-hours times a rate times factors, by the file that the machine
    file names: `usage: {charges: charges.yaml}`. A job is charged when it ends, and cut where rates
    change. What is not known is no charge of 0: these jobs are named with the reason.
    """


@usage.group("incident", short_help="Keep the incidents of machines.")
def incident() -> None:
    """Keep the incidents of machines: from when to when, which nodes, by which cause.

    They are notes with an end, kept in notes.jsonl in the folder of the trials: `seatrial history`
    shows them, too. Nothing is deleted: corrections and withdrawals are kept with who, when and
    why.
    """


_machine = click.option(
    "-m",
    "--machine",
    shell_complete=complete("machines"),
    help="Machine, by name or file.",
)
_values = together(
    value_option("--from", "start", "TIME", "When it began: 2012-01-20T03:00, 2d.", type=MOMENT),
    value_option("--to", "end", "TIME", "When it was over.", type=MOMENT),
    value_option("--nodes", "SET", "Its nodes, such as nid[00001-00008]; all: the whole machine."),
    value_option("--cause", "WORD", "The kind of its cause: hardware, software, power."),
)
_why = value_option("--why", "TEXT", "Why.", required=True)


@incident.command("add")
@click.argument("text")
@_machine
@_values
@text_option("--id", "name", "NAME", "Its id; default: a random one.")
@click.pass_obj
@act("seatrial.plugins.usage.acts:add")
def incident_add() -> None:
    """Record an incident; TEXT says what happened, as users are told.

    Without --to it is not over; say it later by `correct`. Without --nodes it was of all nodes.
    """


@incident.command("correct")
@click.argument("name", metavar="ID")
@_values
@text_option("--text", "TEXT", "What happened.")
@_why
@click.pass_obj
@act("seatrial.plugins.usage.acts:correct")
def incident_correct() -> None:
    """Correct an incident: what is given replaces what was said."""


@incident.command("withdraw")
@click.argument("name", metavar="ID")
@_why
@click.pass_obj
@act("seatrial.plugins.usage.acts:withdraw")
def incident_withdraw() -> None:
    """Withdraw an incident. It stays in the file, and in `list --all`."""


@incident.command("list")
@click.option("-m", "--machine", default="", help="Only of this machine.")
@click.option("--all", "whole", is_flag=True, help="Also what was withdrawn or corrected.")
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.plugins.usage.acts:list_incidents")
def incident_list() -> None:
    """List the incidents, who recorded them, and what was changed."""


@usage.command("losses", short_help="What incidents cost; refunds, texts.")
@text_option("--incident", "name", "ID", "Of this incident; default: of all in the time.")
@value_option("--since", "TIME", "Incidents that began since.", type=MOMENT, default=0)
@value_option("--until", "TIME", "Incidents that began before then.", type=MOMENT, default=0)
@text_option(
    "--by", "NAME[,NAME]", "user, account, cause, incident, or what `seatrial usage --by` knows."
)
@text_option("--count", "STATE[,STATE]", "Count jobs in these states, too, such as cancelled.")
@click.option(
    "--checkpoints",
    type=_FILE,
    metavar="FILE",
    help="CSV with the titles job,time: when jobs had last saved their work.",
)
@click.option("--jobs", is_flag=True, help="List each job, with why it counts or does not.")
@click.option(
    "--text",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the message for each user into a new folder.",
)
@click.option("--names", is_flag=True, help="Name the users in the messages and their files.")
@_common
@act("seatrial.plugins.usage.acts:losses")
def losses() -> None:
    """Show what incidents cost: core-hours lost, refunds, and time for which nodes had no job.

    A job counts that ran on a node of the incident and was ended by it: a node failed under it, or
    it failed, ran into its time limit or was put back into the queue while the incident lasted.

    \b
    seatrial usage losses --incident kgni --by user,account
    seatrial usage losses -m hopper --since 2012-01-01 --by cause
    seatrial usage losses --incident kgni --text messages --names
    """


@usage.command("whatif", short_help="Tell how waits would change, by a replay.")
@text_option(
    *("-m", "--machine", "NAME"),
    "Machine whose jobs are replayed; default: the only one with jobs, beside that of --to.",
    shell_complete=complete("machines"),
)
@list_option(
    "--move",
    "move",
    "NAME=VALUE",
    "Jobs that go to another machine, such as application=g09 or mode=compat; as for `seatrial "
    "usage --where`. May be repeated: all must hold.",
)
@text_option(
    "--to",
    "NAME",
    "The machine to which they go.",
    shell_complete=complete("machines"),
)
@value_option(
    *("--speed", "FACTOR"),
    "How many times as fast they run there; default: by tests of the application that ran on both "
    "machines, else 1.",
    type=Parsed("seatrial.plugins.usage.whatif_command:parse_speed"),
)
@value_option(
    *("--add", "nodes=N", "Nodes or cores that the machine has more; nodes=-N: less."),
    type=Parsed("seatrial.plugins.usage.whatif_command:parse_amount"),
)
@choice_option(
    "--policy",
    of=["backfill", "priority", "queue"],
    default=None,
    help="Another order of starts. queue: first come, first served; priority: by priorities as "
    "they are learned; in both nobody overtakes. backfill: as learned, with EASY backfill.",
)
@list_option(
    "--drain",
    "drains",
    "SPAN",
    "A planned outage: 2010-03-01..2010-03-04, with `,nodes=500` of a part. May be repeated.",
    type=Parsed("seatrial.plugins.usage.whatif_command:parse_drain"),
)
@value_option("--since", "TIME", "Replay jobs from then on.", type=MOMENT, default=0)
@value_option("--until", "TIME", "Replay jobs before then.", type=MOMENT, default=0)
@list_option(
    "--size",
    "sizes",
    "[NAME=]N",
    "Nodes (or cores) of a machine; default: by its file, else the most in use at once.",
    type=Parsed("seatrial.plugins.usage.whatif_command:parse_size"),
)
@list_option(
    "--only",
    "only",
    "[NAME:]CONDITION",
    "Replay these jobs of a machine alone, such as queue=regular: where partitions have nodes of "
    "their own. May be repeated: all must hold.",
)
@choice_option(
    "--unit",
    of=["nodes", "cores"],
    default=None,
    help="What jobs are counted in; default: nodes, or cores where jobs share nodes.",
)
@path_option("--applications", "FILE", "Rules for applications, in place of the machine's.")
@path_option("--fields", "FILE", "Fields of science, in place of the machine's file.")
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.plugins.usage.whatif_command:whatif")
def whatif() -> None:
    """Tell how waits would change: with jobs on another machine, more nodes, an outage, or another
    order of starts.

    The jobs that were imported are started again by a simulated batch system. How far that is off
    from what happened is said first, and no change that is smaller is told. The policy is learned
    from the first half of the time and judged by the second one.

    \b
    seatrial usage whatif -m franklin --move application=g09 --to hopper
    seatrial usage whatif -m franklin --move mode=compat --to hopper --speed 1.3
    seatrial usage whatif -m hopper --add nodes=1000
    seatrial usage whatif -m hopper --drain 2010-03-01..2010-03-04
    """


# ---- removal -------------------------------------------------------------------------------------

_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@usage.command("keep", short_help="Remove the jobs whose time is over.")
@text_option("-m", "--machine", "NAME", "Machine, by name or file; default: all with jobs.")
@value_option(
    "--for",
    "span",
    "TIME",
    "Keep jobs for so long after their end, such as 730d; default: `usage: {keep: ...}` of the "
    "machine file.",
    type=Parsed(seconds),
)
@_yes
@click.pass_obj
@act("seatrial.plugins.usage.privacy:keep")
def keep() -> None:
    """Remove the jobs whose time is over.

    The machine file says how long jobs are kept (`usage: {keep: 730d}`); imports leave older ones
    out. This removes from the archive and the store those that have become older since. What of the
    time was imported is still known: it becomes no gap.

    \b
    seatrial usage keep -m hopper --yes          for cron
    """


@usage.command("forget", short_help="Remove the jobs of a user for good.")
@click.argument("user")
@text_option("-m", "--machine", "NAME", "Only jobs of this machine; default: of all.")
@click.option("--again", is_flag=True, help="Let imports bring in jobs of USER again.")
@_yes
@click.pass_obj
@act("seatrial.plugins.usage.privacy:forget")
def forget() -> None:
    """Remove the jobs of a user, and leave them out of imports.

    The jobs go from the archive, from its files of rejected rows, and from the store. Sums of
    answers become smaller. The audit keeps who removed how many, and a keyed hash of the user, by
    which imports know whom to leave out; it keeps no name. Jobs that were imported with --anonymous
    are found by the name, too. Copies elsewhere, such as reports and the batch system's own
    records, are not touched.

    \b
    seatrial usage forget ann
    """
