"""The command ``import``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    Parsed,
    list_option,
    text_option,
    together,
    value_option,
)
from seatrial.hooks import load, provided


def _trial_options(machine: Callable[..., Any]) -> Callable[..., Any]:
    """Return what every import of results takes, with the option of their machine."""
    return together(
        click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True)),
        click.option(
            "-o", "--output", "tag", required=True, metavar="TRIAL", help="Tag of the new trial."
        ),
        machine,
        text_option("--by", "WHO", "Who brings them in; default: you."),
        click.pass_obj,
    )


_MACHINE = ("-m", "--machine", "NAME", "Machine that the results are of.")
trial_options = _trial_options(text_option(*_MACHINE))
# of tables, which do not name their machine
_table_options = _trial_options(value_option(*_MACHINE, required=True))
# which is better of metrics: no other tool tells it of all
direction_options = together(
    list_option("--higher", "METRIC", "Higher is better of it."),
    list_option("--lower", "METRIC", "Lower is better of it."),
)


def _column(name: str, about: str) -> Callable[..., Any]:
    return text_option(f"--{name}", "COLUMN", about)


def _figure(about: str) -> Callable[..., Any]:
    named = Parsed("seatrial.plugins.importers.acts:named_figure")
    return list_option("--figure", "figures", "COLUMN[=UNIT]", about, type=named)


_PARAMETER = list_option("--parameter", "parameters", "COLUMN", "Parameter of the case.")
# what every import of tests takes
suite_options = together(
    click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True)),
    click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(path_type=Path),
        help="Folder of the new suite; it must be new or empty.",
    ),
)


@click.group("import")
def import_() -> None:
    """Bring in what another harness has: its tests become a suite, its results trials."""


@import_.command("oth")
@suite_options
@click.option(
    "--machine-ini",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The harness's file of the machine, for values that tests take from the environment.",
)
@click.pass_obj
@act("seatrial.plugins.importers.acts:import_oth")
def import_oth() -> None:
    """Import tests of the OLCF Test Harness.

    Its results are brought in by `seatrial import oth-results`.

    PATH is a folder with applications (APPLICATION/TEST/Scripts/rgt_test_input.ini), at any depth,
    or an input file with lines `Test = APPLICATION TEST`. Nothing of it is executed or changed.
    Copies of a test that differ in a number become parameters of one test, where that is provably
    the same. What was not carried over is listed, with file and line, in SUITE/import.md.

    \b
    seatrial import oth applications -o suites/oth
    seatrial list suites/oth
    """


@import_.command("reframe-tests")
@suite_options
@list_option(
    "--library",
    "libraries",
    "FOLDER",
    "Sources that the tests import, such as a copy of ReFrame for its hpctestlib.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@text_option(
    "--system",
    "NAME[:PARTITION]",
    "System of ReFrame: decides what tests ask of current_system and current_partition.",
)
@click.pass_obj
@act("seatrial.plugins.importers.acts:import_reframe_tests")
def import_reframe_tests() -> None:
    """Import tests of ReFrame.

    Its results are brought in by `seatrial import reframe`.

    PATH is a Python source with tests, or a folder with these. The source is parsed and never
    executed. A test of which each statement is of a known form becomes a test of the suite. Another
    one is begun: its test.yaml has what was understood, and the rest as comments; it is left out of
    trials until you have finished it. SUITE/import.md lists what was not carried over, by reason.

    \b
    seatrial import reframe-tests checks -o suites/reframe
    seatrial list suites/reframe
    """


@import_.command("oth-results")
@text_option(
    "--tag",
    "log_tag",
    "PATTERN",
    "Only runs with such a tag in the system log (RGT_SYSTEM_LOG_TAG).",
)
@trial_options
@act("seatrial.plugins.importers.acts:import_oth_results")
def import_oth_results() -> None:
    """Import results of the OLCF Test Harness as a trial.

    Its tests are brought in by `seatrial import oth`.

    PATH is a folder with applications, at any depth: of each test, Status and Run_Archive are read,
    and nothing is changed. What other imported trials have already is left out, so the command can
    be repeated. What could not be read is listed, with its file, in import.md of the trial.

    \b
    seatrial import oth-results applications -o oth-2021
    seatrial history elapsed --machine frontier
    """


@import_.command("csv")
@_column("case", "Column of the case: TEST, or TEST{NAME=VALUE,...}@TOOLCHAIN.")
@text_option("--test", "NAME", "Test of all rows, without --case.")
@_PARAMETER
@_column("metric", "Column of the metric's name.")
@_column("value", "Column of its figure.")
@_column("unit", "Column of its unit.")
@_column("better", "Column that says which is better: higher, lower or none.")
@_figure("Column of figures of its own.")
@direction_options
@_column("time", "Column of the time, such as 2026-11-20 14:03, or seconds since 1970.")
@_column("node", "Column of the nodes.")
@_column("nodes", "Column of the number of nodes.")
@_column("tasks", "Column of the number of tasks.")
@_column("threads", "Column of the threads of each task.")
@_column("status", "Column of the verdict, such as passed or failed.")
@_column("id", "Column that tells runs with the same time apart.")
@_table_options
@act("seatrial.plugins.importers.acts:import_csv")
def import_csv() -> None:
    """Import a table of results of any tool as a trial.

    PATH is a CSV file (or with tabs, semicolons or bars); its first line names the columns. A
    column that is named case (or test), metric, value, unit, better, time, node, nodes, tasks,
    threads, status or id needs no option. Rows of a case with the same time are one run. A row is a
    figure, or with --figure a run.

    \b
    seatrial import csv old.csv -o old -m frost --case benchmark --time date
    seatrial import csv old.csv -o old -m frost --test stream --figure triad=MB/s
    """


@import_.command("jube")
@text_option("--test", "NAME", "Test; default: the benchmark's name.")
@_PARAMETER
@_figure("Column of figures.")
@direction_options
@_table_options
@act("seatrial.plugins.importers.acts:import_jube")
def import_jube() -> None:
    """Import result tables of JUBE as a trial.

    PATH is a table (result/*.dat), a run of a benchmark, or a folder with these. Columns that are
    parameters of the benchmark make the case, other columns of numbers are figures; options say
    otherwise. The time is that of the start of the benchmark.

    \b
    jube result bench_run --id 0
    seatrial import jube bench_run -o jube -m frost --higher bw
    """


@import_.command("pavilion")
@direction_options
@trial_options
@act("seatrial.plugins.importers.acts:import_pavilion")
def import_pavilion() -> None:
    """Import results of Pavilion2 as a trial.

    PATH is a results.json of a test run, the log of all results (results.log), or a folder with
    these, such as working_dir. The numbers that a test's results have are figures, with the unit
    1. Of several systems, --machine chooses one; where there is one, it gives that another name.

    \b
    seatrial import pavilion working_dir -o pavilion --higher avg_speed
    """


@import_.command("reframe")
@direction_options
@trial_options
@act("seatrial.plugins.importers.acts:import_reframe")
def import_reframe() -> None:
    """Import logs and reports of ReFrame as a trial.

    Its tests are brought in by `seatrial import reframe-tests`.

    PATH is a performance log (*.log of 3.x or 4.x), a report (*.json), or a folder with these at
    any depth. What ReFrame expected becomes references. Of several systems, --machine chooses one;
    where there is one, it gives that another name.

    \b
    seatrial import reframe perflogs -o reframe-2021
    seatrial history triad --trial reframe-2021
    """


for _importer in provided("seatrial_importers"):
    import_.add_command(load(_importer.command))
