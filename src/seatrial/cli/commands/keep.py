"""The commands below "Keep and exchange data"."""

from pathlib import Path

import click

from seatrial.cli.about import FILES, NAMES, SHELLS
from seatrial.cli.commands import act
from seatrial.cli.options import (
    MOMENT,
    STAGES,
    Parsed,
    complete,
    format_option,
    list_option,
    machine_option,
    text_option,
    value_option,
)
from seatrial.units import seconds


@click.group("figures")
def figures() -> None:
    """Bring in figures that others give, such as a vendor's."""


@figures.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--as", "tag", required=True, metavar="TAG", help="Name that they are compared by.")
@click.option(
    "-m", "--machine", default="", help="System that they were measured on; default: the TAG."
)
@text_option("--by", "WHO", "Who gave them; default: you.")
@text_option("--source", "TEXT", "Where they stand, such as a paper; default: who gave them.")
@text_option("--date", "DATE", "When they were measured: 2013, 2013-03 or 2013-03-14.")
@text_option("--case", "CASE", "Of JSON: the case, such as ior{nodes=160}.")
@click.pass_obj
@act("seatrial.cli.figures:figures_import")
def figures_import() -> None:
    """Import a file of figures as one side of comparisons.

    The first line of a CSV file names the columns: case (or test, parameters, toolchain), metric,
    unit, value and n; if there are, stage, better, sd, min, max, system, source and date. A JSON
    file is what `seatrial parse` prints. The figures are kept like a trial and are marked as given
    everywhere. No verdict, statistic or criterion takes them for measured ones.

    \b
    seatrial figures import vt.csv --as vt --by "Example Corp."
    seatrial figures import out.json --as vt --case "ior{nodes=160}"
    seatrial compare vt accept-pt:stage=alone
    """


@click.group("reference")
def reference() -> None:
    """Accept measured figures as references, or list those of a machine.

    References stand beside the machine, in machines/NAME/references.yaml. A run whose figure
    misses its reference gets the verdict `performance`.
    """


@reference.command("accept", short_help="Write references from measured medians.")
@click.argument("trials", nargs=-1, metavar="[TRIAL]...", shell_complete=complete("trials"))
@click.option(
    "--metric", default="", help="Only this metric; `elapsed`, the time of the script, is one."
)
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="alone",
    help="Of runs at full machine (full), or of all others.  [default: alone]",
)
@value_option(
    "--since", "TIME", "Only runs created since: 30d or 2026-11-20.", type=MOMENT, default=0
)
@click.option("-m", "--machine", default="", help="With --since alone: the machine, by its name.")
@click.option("--two-sided", is_flag=True, help="Bound the better side, too.")
@click.option("--force", is_flag=True, help="Even references that allow 50 % or more.")
@click.option("--rehearsed", is_flag=True, help="Even of a rehearsal, which measured nothing.")
@click.option("--damaged", is_flag=True, help="Even of a trial whose journal is damaged.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
@click.pass_obj
@act("seatrial.cli.reference:reference_accept")
def reference_accept() -> None:
    """Write references from the measured medians of TRIAL, of several, or of all --since a time.

    The tolerance of each is learned from the spread of its figures: more spread gives a wider
    tolerance. One that would allow 50 % or more is left out. Of several trials, only figures since
    the last confirmed change of level count. An existing reference for the same case is replaced;
    others stay as they are. Sums of files that must be `identical` are learned, too, where all runs
    with a right answer wrote the same.
    """


@reference.command("list")
@machine_option
@act("seatrial.cli.reference:reference_list")
def reference_list() -> None:
    """List the references of a machine."""


@click.command("note")
@click.argument("text", required=False)
@value_option("--at", "TIME", "When it was: 2h (ago), 2026-11-20T14:03; default: now.", type=MOMENT)
@click.option("-m", "--machine", default="", help="Machine that it is about; default: every one.")
@click.option("--list", "listed", is_flag=True, help="List the notes.")
@value_option("--remove", "ID", "Remove the note of that id, or its beginning.")
@click.pass_obj
@act("seatrial.cli.note:note")
def note() -> None:
    """Note what happened to the machine: an upgrade, a reset, an outage.

    `seatrial history` shows the notes on its time lines, and beside each change the nearest one.
    They are kept in notes.jsonl in the folder of the trials.
    """


@click.command("builds")
@machine_option
@click.option(
    "--remove",
    "removes",
    is_flag=True,
    help="Remove those that no trial uses, and those that were never finished.",
)
@click.option(
    "--older-than",
    type=Parsed(seconds),
    default=0.0,
    metavar="TIME",
    help="With --remove: only those made and last used before, e.g. 30d.",
)
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.builds:builds")
def builds() -> None:
    """List the builds that trials share, or remove those that no trial uses.

    They lie in .builds beside the trials, or where `builds: {folder: ...}` of MACHINE says.

    \b
    seatrial builds
    seatrial builds --remove --older-than 30d
    """


@click.group("store")
def store() -> None:
    """Create, update, rebuild or inspect the store of results."""


@store.command("path")
@click.pass_obj
@act("seatrial.cli.store:print_path")
def store_path() -> None:
    """Print the store's path."""


@store.command("info")
@click.pass_obj
@act("seatrial.cli.store:print_info")
def store_info() -> None:
    """Show the contents of the store, and where it is."""


@store.command("create", short_help="Make a site's store in a database of PostgreSQL.")
@click.argument("url")
@text_option("--writer", "ROLE", "Role that writes and owns the tables; default: you.")
@list_option("--viewer", "viewers", "ROLE", "Who may read it.")
@act("seatrial.cli.store:create")
def store_create() -> None:
    """Make a site's store in a PostgreSQL database: schema, tables, roles.

    Connect as the owner of the database. The roles must exist; repeat the command to add what is
    missing. A store in a file needs no such command: it is made when it is first used.

    \b
    seatrial store create postgresql://postgres@db/seatrial \\
        --writer collector --viewer grafana
    """


@store.command("update", short_help="Bring the store up to date with the journals.")
@click.pass_obj
@act("seatrial.cli.store:update")
def store_update() -> None:
    """Bring the store up to date with the journals below the folder of trials.

    Commands that read the store do so themselves. A store that others only read must be updated by
    somebody.
    """


@store.command("rebuild", short_help="Empty the store, and fill it from the journals.")
@click.pass_obj
@act("seatrial.cli.store:rebuild")
def store_rebuild() -> None:
    """Empty the store and fill it again from the journals below the folder of trials.

    Trials whose folder is gone are then gone from the store too.
    """


@click.command("parse")
@click.argument("form", metavar="[FORMAT]", required=False)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the formats.")
@act("seatrial.cli.parse:parse")
def parse() -> None:
    """Print the figures of FILE (`-`: stdin), an output of that FORMAT, as JSON.

    It prints a list of {name, value, unit, better, labels}. A file that is truncated, failed, or of
    another program is refused with the reason and exit code 2. Labels of a launcher are taken off;
    lines among the rows that are not known are passed over, and told on stderr. `metrics: {from:
    FORMAT}` reads the same figures in a test.
    """


@click.command("config")
@click.argument("key", required=False, type=click.Choice(NAMES))
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.pass_context
@act("seatrial.cli.about:config")
def config() -> None:
    """Show the settings: those of KEY alone, or all.

    A command line comes first, then the variables SEATRIAL_MACHINE, SEATRIAL_TRIALS, SEATRIAL_STORE
    and SEATRIAL_LOG_LEVEL, then ~/.config/seatrial/config.yaml, then /etc/seatrial/config.yaml. A
    line of these files is such as `trials: /scratch/me/trials`.
    """


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@act("seatrial.cli.about:completion")
def completion() -> None:
    """Print what makes a SHELL complete commands, options, trials, runs, tests and machines.

    \b
    seatrial completion bash > ~/.local/share/bash-completion/completions/seatrial
    seatrial completion zsh > ~/.zsh/_seatrial        # in a folder of $fpath
    seatrial completion fish > ~/.config/fish/completions/seatrial.fish
    """


@click.command("man")
@click.argument("folder", type=click.Path(path_type=Path))
@click.pass_context
@act("seatrial.cli.about:man")
def man() -> None:
    """Write a man page of each command to FOLDER/man1.

    \b
    seatrial man ~/.local/share/man
    man seatrial-accept-status
    """


@click.command("schema")
@click.argument("file", type=click.Choice(list(FILES)), default="test")
@act("seatrial.cli.about:schema")
def schema() -> None:
    """Print the JSON Schema of test.yaml (or of a machine, of references, of a plan, of a score,
    of a tuning, ...).

    Editors use it to complete and check keys; for the YAML language server write
    `# yaml-language-server: $schema=test.schema.json` on the first line of a test.
    """
