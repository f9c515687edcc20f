"""The commands below "Judge results"."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    SHARE,
    STAGES,
    FiniteRange,
    choice_option,
    complete,
    drawn_format_option,
    format_option,
    json_option,
    list_option,
    machine_filter,
    per_option,
    require_references_option,
    run_filters,
    since_filter,
    test_filter,
    tests_filter,
    text_option,
    together,
    trials_argument,
)
from seatrial.hooks import provided


@click.command("advise")
@click.argument("trial", shell_complete=complete("trials"))
@per_option
@drawn_format_option
@click.pass_obj
@act("seatrial.cli.tune:advise")
def advise() -> None:
    """Show which setting to use by the tuning TRIAL, how sure that is, and what it cost.

    With --per also which setting is best by what a run took: a faster one may need more nodes.
    """


@click.command("judge")
@click.argument("names", metavar="TRIAL|RUN...", nargs=-1, required=True)
@text_option("--cause", "TEXT", "What caused it, such as F2.")
@text_option("--comment", "TEXT", "A remark on the run.")
@click.option(
    "--exclude",
    is_flag=True,
    help="Both sides agreed that criteria leave it out; needs two --by, and a cause or a comment.",
)
@click.option("--withdraw", is_flag=True, help="Take back what was said of the run.")
@list_option("--by", "NAME", "Who says so; may be repeated.")
@click.option(
    "--again", is_flag=True, help="Record verdicts and figures; without it they are only shown."
)
@text_option("--reason", "TEXT", "Why; needed with --again.")
@list_option(
    "--with",
    "suites",
    "SUITE",
    "Suite to judge by; may be repeated. Default: that of the trial, as it is now. Needed "
    "for the trial of another user, as what judges runs under your name.",
)
@click.option(
    "--references",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of references to judge by. Default: that of the machine, as it is now.",
)
@require_references_option
@click.option("--dry-run", is_flag=True, help="Show what would change, record nothing.")
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.judge:judge")
def judge() -> None:
    """Judge the runs of TRIAL again, or say something of single runs.

    With --cause, --comment, --exclude or --withdraw: record what people say of RUN, also while its
    trial runs. Verdict and figures stay as they were. An exclusion is by agreement, with two
    names; criteria are shown with and without the run.

    \b
    seatrial judge flc6evne6aub --cause F2 --comment "the file system was slow"
    seatrial judge flc6evne6aub --exclude --cause F2 --by "A. Smith" --by "B. Lee"

    With a TRIAL: judge its runs again, after a check, a tolerance or a reference was corrected.
    The checks and references are taken as they are now, the outputs as they were kept. Each run
    whose verdict changes gets an event with who, when and why; its first verdict stays in the
    journal. Figures that were recorded stay as they are, and those that had not been found are
    added, also where the verdict stays. Verdicts that are not of a check
    (timeout, node failure, cancelled) are not touched.
    """


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A B...", shell_complete=complete("sides"))
@list_option("--metric", "metrics", "PATTERN", "Only these metrics.")
@tests_filter
@click.option(
    "--threshold",
    type=SHARE,
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="The least effect that matters, such as 3%.",
)
@list_option("--across", "PARAMETER", "Compare cases that differ in this.")
@text_option("--best-of", "NAME[,NAME]", "Each side by its best over these, such as nodes,tasks.")
@click.option("--each-node", is_flag=True, help="A row for each node of tests run on each.")
@click.option("--elapsed", is_flag=True, help="Scripts' times, too, beside figures of merit.")
@click.option("--ladder", is_flag=True, help="Each side with the one before, and the product.")
@click.option("--spread", is_flag=True, help="Which side varies more, in place of the medians.")
@per_option
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.compare:compare")
def compare() -> None:
    """Compare B (and C...) with A: a row for each metric of each case, the largest change first.

    A side is a trial, with conditions behind a colon; @ stands for all trials. The time that
    scripts took is the metric `elapsed`; it is shown of cases without a figure of merit.
    Exit code 1: something is worse, beyond noise; 3: too few runs to decide, or one side has no
    right answer.

    \b
    seatrial compare before after
    seatrial compare nightly:toolchain=gcc* nightly:toolchain=clang*
    seatrial compare @machine=c5,until=2026-05-01 @machine=c5,since=2026-05-01
    seatrial compare week:launch=mpi week:launch=hybrid --across ranks
    seatrial compare v0 v1 v2 --ladder
    seatrial compare before after --spread
    seatrial compare carver hopper --per core
    seatrial compare daint titan --best-of nodes,tasks
    """


@click.command("history")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@click.option("--stage", type=click.Choice(STAGES), default=None, help="Only of this stage.")
@run_filters
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1: a change for the worse is confirmed; 3: none is, and one could not have "
    "been seen.",
)
@click.option("--given", is_flag=True, help="Figures that others gave, too, marked.")
@drawn_format_option
@click.pass_obj
@act("seatrial.cli.history:history")
def history() -> None:
    """Show METRIC over time, a series for each case, with the changes of its level.

    METRIC is a figure of merit, `elapsed` (the time of the script), or `success_rate`: the share of
    the runs of a test that passed, by trial and day; `latency_by_level` and `bandwidth_by_level` of
    the probe `pingpong` have a series for each level of the network. A change is *suspect* or
    *confirmed*; only confirmed ones for the worse make --check end with 1. It ends with 3 where no
    change could have been seen: too few figures, a single trial, a latest run without a figure.
    """


@click.command("variability")
@click.argument("trial", shell_complete=complete("trials"))
@test_filter
@click.option("--metric", default="", help="Only this metric; `elapsed` is one.")
@click.option(
    "--exclude",
    type=FiniteRange(min=1),
    metavar="D",
    help="Leave out figures farther than D robust deviations from the median.",
)
@json_option
@click.pass_obj
@act("seatrial.cli.nodes:show_variability")
def variability() -> None:
    """Show how much the tests of TRIAL vary, its outliers, and what they share."""


@click.command("matrix")
@trials_argument
@click.option(
    "--by",
    default="toolchain",
    show_default=True,
    metavar="NAME",
    help="The columns: toolchain, a parameter, nodes, tasks, threads, cores, machine, trial, "
    "stage or node.",
)
@click.option("--metric", default="", help="The figure; default: the first of each test.")
@click.option("--cases", "each_case", is_flag=True, help="A row for each case, not for each test.")
@tests_filter
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.sides:matrix")
def matrix() -> None:
    """Show tests by toolchains: passed, failed, build failed, with the figure of merit.

    TRIAL may have conditions, as for `seatrial compare`. A figure is the median of the runs with a
    right answer. Exit code 1: something failed or was not built; 3: else, something was not run.

    \b
    seatrial matrix ft
    seatrial matrix ft --by compiler_flags --cases
    seatrial matrix ft:tag=library --format json
    """


@click.command("scaling")
@trials_argument
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="What grows: threads, tasks, nodes, cores (tasks x threads), a parameter, or a label.",
)
@click.option(
    "--metric", default="", help="The figure that scales; default: the one that most runs have."
)
@list_option(
    "--by", "NAME", "A line for each toolchain, trial, machine, stage, or value of a parameter."
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: the same speed is ideal."
)
@click.option("--size", is_flag=True, help="x is a size of the work: curves with bands, crossings.")
@click.option(
    "--pays",
    type=SHARE,
    default="50%",
    show_default=True,
    metavar="SHARE",
    help="Smallest share of an addition that must become speed.",
)
@drawn_format_option
@click.pass_obj
@act("seatrial.cli.sides:scaling")
def scaling() -> None:
    """Show how a metric scales: speed-up, efficiency, where scaling ends, the best setting.

    Over a size (a label of figures such as bytes, a parameter with a unit, or with --size) it shows
    a curve for each setting, and where two of them cross. TRIAL may have conditions, as for
    `seatrial compare`. Settings that failed are shown with their cause.

    \b
    seatrial scaling sweep --x threads --metric triad --by toolchain
    seatrial scaling v1 v2 --x nodes --by trial --weak
    seatrial scaling osu1 --x bytes --by place
    """


@click.command("ratio")
@trials_argument
@click.option(
    "--of",
    required=True,
    metavar="NAME=FIRST,SECOND",
    help="The two ways: toolchain=native,compat, or values of a parameter.",
)
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="The size: tasks, nodes, threads, cores, a parameter, or a label of figures.",
)
@click.option(
    "--metric",
    default="",
    help="The figure; default: elapsed, over a label the figure that most runs have.",
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: there is no speed-up."
)
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.cli.sides:ratio")
def ratio() -> None:
    """Show how many times as long the second way takes as the first, at each size.

    With 95 % intervals, the speed-up of both, sizes that failed with their cause, the range over
    all tests, and how the ratio changes from the least size to the largest. TRIAL may have
    conditions, as for `seatrial compare`.

    \b
    seatrial ratio both --of toolchain=native,compat --x tasks
    seatrial ratio sweep --of order=smp,grid --x nodes --metric rate
    seatrial ratio osu1 --of place=X,Z --x bytes
    """


@click.command("records")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@run_filters
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.cli.history:records")
def records() -> None:
    """Show the best figure of METRIC that each machine ever had, by test.

    Each record has its run, its time, of how many figures it is the best, and the median of its
    case. Figures that others gave stand among them, marked, with their source.

    \b
    seatrial records write
    seatrial records create -k mdtest --format csv
    """


@click.command("best")
@trials_argument
@text_option(
    "--over",
    "NAME[,NAME]",
    "What makes a setting: parameters, toolchain, tasks...; default: all parameters that vary.",
)
@text_option(
    "--best-of", "NAME[,NAME]", "Each setting by its best over these, such as nodes,tasks."
)
@click.option("--metric", default="", help="The figure; default: the one that most runs have.")
@text_option(
    "--x", "NAME", "Rank at each value of a label or parameter; default: bytes, if it has several."
)
@choice_option(
    "--statistic",
    of=["median", "least"],
    help="Rank by the median of the runs, or by the best of them.",
)
@tests_filter
@per_option
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.sides:best")
def best() -> None:
    """Rank settings: the best one, those that cannot be told from it, those that failed.

    TRIAL may have conditions, as for `seatrial compare`. With 95 % a best setting is among those
    that are not called worse. Figures that others gave stand beside them, marked and not ranked. Of
    a figure with several sizes it tells the best at each, and over which sizes each is best.

    \b
    seatrial best sweep
    seatrial best sweep --over order,stripe --metric bandwidth
    seatrial best week1 week2 week3 --over threads --statistic least
    seatrial best osu1 --over place --metric "latency{bytes=8}"
    seatrial best daint titan vendor --over machine --best-of nodes,tasks
    """


@click.command("bands")
@click.argument("source", metavar="TRIAL|FILE")
@click.option("-m", "--machine", help="Machine whose topology is used; default: the trial's.")
@json_option
@click.pass_obj
@act("seatrial.cli.nodes:bands")
def bands() -> None:
    """Show latency and bandwidth of pairs by level of the network, and by kind of core.

    Of TRIAL: all right runs of the probe `pingpong`. FILE: an output of `pingpong`. A node pair of
    several runs or ranks has the median of its figures.
    """


@click.command("suspects")
@list_option(
    "--trial", "trials", "TAG", "Only of this trial; may be repeated; default: all but rehearsals."
)
@since_filter
@test_filter
@machine_filter
@together(
    *(
        text_option(f"--{source.option.name}", source.metavar, source.option.help)
        for source in provided("seatrial_suspect_sources")
    )
)
@json_option
@click.pass_obj
@act("seatrial.cli.nodes:suspects")
def suspects() -> None:
    """Name the nodes, and groups of nodes, that explain failed or slow runs better than chance.

    A run counts as bad if it failed, was at its walltime, or was far slower than the others of its
    case. p is the chance of as many bad runs for a healthy node, times the number of nodes and
    groups that were compared.
    """


@click.command("score")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@trials_argument
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.sides:score")
def score() -> None:
    """Compute the score that FILE (a score.yaml) describes from the figures of TRIAL.

    The parts come first: a score hides them. Each TRIAL has its own score; where the file has
    phases, the first TRIAL is of the first phase, and so on, and what they deliver in all their
    time is the sum. TRIAL may have conditions, as for `seatrial compare`. Exit code 1: a part has
    no figure, so there is no score.
    """
