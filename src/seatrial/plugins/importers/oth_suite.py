"""Write tests of the OLCF Test Harness as a suite.

    imported = import_tests(root, out, environment)
    imported.tests, imported.notes      # what was written, what was not carried over

An application keeps its folders: ``APP/Source``, ``APP/TEST/Scripts``. Beside Scripts there is a
test.yaml, with the lines of the template as its script, and a script for each of check_cmd and
report_cmd. Nothing of what is imported is executed.
"""

import hashlib
import json
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.escaping import shell_word
from seatrial.files import remove_tree, replace_file
from seatrial.judge.reading import head, read_text
from seatrial.model.machine_file import faults_of_variables
from seatrial.model.run_settings import faults_of_options
from seatrial.plugins.importers import oth_job_script
from seatrial.plugins.importers.oth_job_script import (
    SCRIPTS,
    TEST_FILE,
    OthTest,
    TestList,
    find_tests,
    may_be_variables,
    read_test,
)
from seatrial.plugins.importers.results import ImportNote, faults_of_test
from seatrial.units import count, listed

# ---- copies --------------------------------------------------------------------------------------
#
# Find tests that are copies of one another but for some values: they become one test with
# parameters.
#
# for group in groups(tests):
#     group.tests[0], group.axes, group.zipped, group.name_of   # "collective_${part2}_${nodes}n"
#
# People copy a test's folder and change a number in its ini file and in its name. Two tests are
# copies if all files of their folders are the same, links by what they say, but for the values of
# the ini file; and if each value that differs may be a variable where the template uses it. The
# name of the test is a value like others, as templates look at it.


FIXED = ("build_cmd", "check_cmd", "report_cmd")  # commands: a variable in them would not be equal
UNUSED = ("batch_filename",)  # of the values: Seatrial has its own name
_PARAMETER = re.compile(r"[\w.+-]+")  # what one can be
TEMPLATE_LIMIT = 1 << 20  # bytes
NOT_COPIED = ("Run_Archive", "Status", "Perf")
"""Folders of a test that hold what ran."""


class CopyGroup(Struct, frozen=True):
    """Tests that become one."""

    tests: tuple[OthTest, ...]
    #: The name of the one test.
    name: str
    #: The name that a copy had, with parameters: ``collective_${nodes}n``.
    name_of: str
    #: The values of each parameter: in the order of ``tests`` if ``zipped``, else each one once.
    axes: dict[str, list[str]] = {}
    #: The parameter of each key of the ini file that varies and is not ``named``.
    keys: dict[str, str] = {}
    zipped: tuple[str, ...] = ()
    #: The keys whose values are the names of the copies.
    named: tuple[str, ...] = ()


def groups(tests: Iterable[OthTest]) -> list[CopyGroup]:
    """Return the tests of one application in groups of copies, most of them alone."""
    alike: dict[str, list[OthTest]] = {}
    for test in tests:
        alike.setdefault(_fingerprint(test), []).append(test)
    found: list[CopyGroup] = []
    for same in alike.values():
        group = _group(same) if len(same) > 1 else None
        found += [group] if group else [CopyGroup((one,), one.name, one.name) for one in same]
    names = [group.name for group in found]
    return [
        group if names.count(group.name) == 1 else replace(group, name=group.tests[0].name)
        for group in found
    ]


def template_lines(test: OthTest) -> list[str]:
    """Return the lines of a test's template. Raises Unreadable."""
    return read_text(test.template.parent, test.template.name, TEMPLATE_LIMIT).splitlines()


def _fingerprint(test: OthTest) -> str:
    """Return what copies have in common: files, variables, keys, commands, how many start."""
    digest = hashlib.sha256()
    for path, text in sorted(_files(test.folder)):
        digest.update(f"{path}\0{text}\0".encode(errors="surrogateescape"))
    fixed = [(key, test.values.get(key, "")) for key in FIXED]
    same = (sorted(test.values), fixed, sorted(test.variables.items()), test.copies)
    digest.update(repr(same).encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a test's folder with a checksum, and its links with what they say."""
    for path in _paths(folder):
        name = str(path.relative_to(folder))
        if name == f"{SCRIPTS}/{TEST_FILE}":
            continue
        if path.is_symlink():
            yield name, f"-> {path.readlink()}"
        elif path.is_file():
            yield name, hashlib.sha256(path.read_bytes()).hexdigest()


def _paths(folder: Path) -> Iterator[Path]:
    """Yield the files below a test's folder that are copied, and the links to folders."""
    for where, folders, files in os.walk(folder):
        if Path(where) == folder:
            folders[:] = [name for name in folders if name not in NOT_COPIED]
        yield from (Path(where, name) for name in files)
        yield from (path for path in map(Path(where).joinpath, folders) if path.is_symlink())


def _group(tests: Sequence[OthTest]) -> CopyGroup | None:
    """Return the group of tests with one fingerprint; None if a value that differs cannot be a
    variable."""
    varying = _varying(tests)
    if not may_be_variables(template_lines(tests[0]), set(varying)):
        return None
    named = _keys_with_names(tests, varying)
    axes = {key: [test.values[key] for test in tests] for key in varying if key not in named}
    keys = dict(zip(axes, axes, strict=True))
    if not all(map(_PARAMETER.fullmatch, chain.from_iterable(axes.values()))):
        return None
    name, name_of = _name(tests, axes)
    if len(set(zip(*axes.values(), strict=True))) < len(tests):
        return None  # two tests that are the same
    distinct = {key: list(dict.fromkeys(values)) for key, values in axes.items()}
    if math.prod(map(len, distinct.values())) == len(tests):
        return CopyGroup(tuple(tests), name, name_of, distinct, keys, (), named)
    return CopyGroup(tuple(tests), name, name_of, axes, keys, tuple(axes), named)


def _keys_with_names(tests: Sequence[OthTest], keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys whose values are the names of the tests."""
    return tuple(key for key in keys if all(test.values[key] == test.name for test in tests))


def _varying(tests: Sequence[OthTest]) -> list[str]:
    """Return the keys of the ini file whose values differ and are used."""
    return [
        key
        for key in tests[0].values
        if key not in UNUSED and len({test.values[key] for test in tests}) > 1
    ]


def _name(tests: Sequence[OthTest], axes: dict[str, list[str]]) -> tuple[str, str]:
    """Return the name of a group and how the name of a copy is made of parameters; add to ``axes``
    those parts of the names that no other parameter tells."""
    parts = [test.name.split("_") for test in tests]
    if len({len(each) for each in parts}) > 1:
        parts = [[test.name] for test in tests]
    own: list[str] = []
    pattern: list[str] = []
    for place, column in enumerate(zip(*parts, strict=True), 1):
        if len(set(column)) == 1:
            own.append(column[0])
            pattern.append(column[0])
            continue
        told = next(filter(None, (_told(column, key, axes[key]) for key in axes)), "")
        if not told:
            axes[f"part{place}"] = list(column)
            told = f"${{part{place}}}"
        pattern.append(told)
    return "_".join(own) or tests[0].name, "_".join(pattern)


def _told(column: Sequence[str], key: str, values: Sequence[str]) -> str:
    """Return how a parameter tells a part of the names, such as ``${nodes}n``; "" if it cannot."""
    first, value = column[0], values[0]
    for match in re.finditer(re.escape(value), first):
        before, after = first[: match.start()], first[match.end() :]
        if all(part == f"{before}{each}{after}" for part, each in zip(column, values, strict=True)):
            return f"{before}${{{key}}}{after}"
    return ""


# ---- suite ---------------------------------------------------------------------------------------


SHELL = "oth.sh"
FOLDER_OF_SCRIPTS = '"$RGT_TEST_SCRIPTS_DIR"'
LONGEST_SCRIPT = 1 << 20  # bytes
CHECK, REPORT = "check_cmd.sh", "report_cmd.sh"
_PLAIN = re.compile(r"[A-Za-z][\w./{}$-]*", re.ASCII)
_WORDS_OF_YAML = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_OTHER_LAUNCHERS = {"slurm": "jsrun|aprun|poe", "pbs": "jsrun|srun|poe", "lsf": "srun|aprun"}


class ImportedSuite(Struct, frozen=True):
    """A suite that was written: the groups of tests by their names in it, the number of tests that
    were read, the notes."""

    tests: dict[str, CopyGroup]
    read: int
    notes: list[ImportNote]


def import_tests(
    root: Path,
    out: Path,
    environment: Mapping[str, str],
    listed: TestList | None = None,
) -> ImportedSuite:
    """Write the tests at or below ``root`` to the folder ``out``; of them only those that are
    ``listed``, if there is a list. What cannot be read is among the notes. Raises OSError."""
    root = root.resolve()
    by_application, notes = _read_tests(root, environment, listed)
    found: dict[str, CopyGroup] = {}
    if by_application:
        out.mkdir(parents=True, exist_ok=True)
        shell = Path(__file__).with_name(SHELL).read_text()
        text = shell + "".join(_exports(environment))
        replace_file(out / SHELL, text.encode(), follow=True)
    for application, tests in by_application.items():
        is_below = application != root and application.is_relative_to(root)
        own = application.relative_to(root) if is_below else Path(application.name)
        _copy_shared(application, out / own, {test.folder for test in tests})
        for group in groups(tests):
            written, more = _write_group(group, out / own, len(own.parts) + 1)
            found |= {str(own / each.name): each for each in written}
            notes += more
    read = sum(len(tests) for tests in by_application.values())
    return ImportedSuite(found, read, notes)


def _read_tests(
    root: Path, environment: Mapping[str, str], listed: TestList | None
) -> tuple[dict[Path, list[OthTest]], list[ImportNote]]:
    """Return the tests below ``root`` by their application, and what could not be read."""
    notes: list[ImportNote] = []
    by_application: dict[Path, list[OthTest]] = {}
    for folder, copies in _wanted(root, listed, notes):
        try:
            test = replace(read_test(folder, environment), copies=copies)
        except (ValueError, OSError, SeatrialError) as error:
            notes.append(_note_of(error, folder / SCRIPTS / TEST_FILE))
        else:
            by_application.setdefault(test.application, []).append(test)
    return by_application, notes


def _wanted(
    root: Path, listed: TestList | None, notes: list[ImportNote]
) -> Iterator[tuple[Path, int]]:
    """Yield the folders of the tests to read, each with its number of copies; add notes on the
    lines of the list that lead to no test."""
    if listed is None:
        yield from ((folder, 1) for folder in find_tests(root))
        return
    missing = dict(listed.lines)
    for folder in find_tests(root):
        known = (folder.parent.name, folder.name)
        if known not in listed.lines:
            continue
        missing.pop(known, None)
        if copies := listed.copies[known]:
            yield folder, copies
        else:
            text = f"{'/'.join(known)} has 0 copies; the test was left out"
            notes.append(ImportNote(listed.file, listed.lines[known], text))
    for (app, name), line in missing.items():
        text = f"there is no test {app}/{name} below {root}"
        notes.append(ImportNote(listed.file, line, text))
    text = "harness_task: what is done with a suite is said by commands, such as `seatrial run`"
    notes += [ImportNote(listed.file, line, text, lost=False) for line in listed.tasks]


def _note_of(error: Exception, path: Path) -> ImportNote:
    """Return an error as a note; ValueErrors begin with their place."""
    line, text = 0, str(error)
    if match := re.match(re.escape(str(path)) + r"(?::(\d+))?: ", text):
        line, text = int(match[1] or 0), text[match.end() :]
    return ImportNote(path, line, f"{text}; the test was left out")


def _exports(environment: Mapping[str, str]) -> Iterator[str]:
    if environment:
        yield "\n# The machine's defaults.\n"
    for name, value in environment.items():
        yield f"export {name}=${{{name}-{shell_word(value)}}}\n"


def _copy_shared(application: Path, to: Path, tests: set[Path]) -> None:
    """Copy what an application has beside its tests."""
    to.mkdir(parents=True, exist_ok=True)
    for path in sorted(application.iterdir()):
        if path not in tests and not (path / SCRIPTS / TEST_FILE).exists():
            _copy(path, to / path.name)


def _copy(path: Path, to: Path) -> None:
    if path.is_symlink():
        to.symlink_to(path.readlink())
    elif path.is_dir():
        shutil.copytree(path, to, symlinks=True)
    elif path.is_file():
        shutil.copy2(path, to)


def _write_group(
    group: CopyGroup, to: Path, depth: int
) -> tuple[list[CopyGroup], list[ImportNote]]:
    """Write a test to its folder in ``to``, or each of its copies by itself where they cannot be
    one. Return what was written, and the notes on it."""
    folder = to / group.name
    try:
        notes = _write(group, folder, depth)
        if faults := faults_of_test(folder):
            raise ValueError(f"what it became has a fault: {faults}")
        return [group], notes
    except (ValueError, OSError, SeatrialError) as error:
        if folder.is_dir() and not isinstance(error, FileExistsError):
            remove_tree(folder)
        if len(group.tests) == 1:
            return [], [_note_of(error, group.tests[0].file)]
    written, notes = [], []
    for test in group.tests:
        alone, more = _write_group(CopyGroup((test,), test.name, test.name), to, depth)
        written += alone
        notes += more
    return written, notes


def _write(group: CopyGroup, folder: Path, depth: int) -> list[ImportNote]:
    """Write a test, and return the notes on it. ``depth``: of its folder below the suite's. Raises
    ValueError, OSError and SeatrialError."""
    first = group.tests[0]
    folder.mkdir()
    for path in sorted(first.folder.iterdir()):
        if path.name not in NOT_COPIED:
            _copy(path, folder / path.name)
    values = first.values | dict.fromkeys(group.named, group.name_of)
    replacement = oth_job_script.Replacement(values, group.keys)
    for name, key in ((CHECK, "check_cmd"), (REPORT, "report_cmd")):
        if command := values.get(key, "").strip():
            text = _judge(command, group.name_of, key, depth)
            replace_file(folder / name, text.encode())
    text, notes = _test_yaml(group, replacement, depth)
    replace_file(folder / "test.yaml", text.encode())  # a link may have been copied
    for test in group.tests:
        notes += _notes_of_test(test)
    return notes


def _judge(command: str, name_of: str, key: str, depth: int) -> str:
    """Return the script that runs a command of the ini file as the harness does."""
    return (
        f"# {key} of {TEST_FILE}, in the run's directory, as the harness runs it.\n"
        f'. "$SEATRIAL_TEST/{"../" * depth}{SHELL}" "{name_of}"\n'
        f"{_command(command, FOLDER_OF_SCRIPTS)}\n"
    )


def _command(command: str, folder: str) -> str:
    """Return a command whose program is in a folder unless its path is absolute."""
    program, blank, rest = command.strip().partition(" ")
    if not program.startswith("/"):
        program = f"{folder}/{program.removeprefix('./')}"
    return f"{program}{blank}{rest}"


def _notes_of_test(test: OthTest) -> Iterator[ImportNote]:
    values, lines = test.values, test.lines
    if values.get("resubmit", "0") not in ("0", "") or "max_submissions" in values:
        text = "`resubmit` and `max_submissions`: say it with `seatrial run --repeat`, or in a plan"
        yield ImportNote(test.file, lines.get("resubmit", 0), text, lost=False)
    for section in test.others:
        yield ImportNote(test.file, 0, f"the section [{section}] was not carried over")
    for name, text in faults_of_variables(test.variables):
        text = f"[EnvVars] {name}: {text}; the variable was left out"
        yield ImportNote(test.file, lines.get(name.lower(), 0), text)
    for name in test.unknown:
        yield ImportNote(
            test.file, 0, f"{name} must be in the environment, or --machine-ini", False
        )
    if test.is_stopped:
        text = "the test was stopped, so it has the tag `stopped`"
        yield ImportNote(test.folder / SCRIPTS / ".kill_test", 0, text, lost=False)


# ---- test.yaml ----------------------------------------------------------------------------


def _test_yaml(
    group: CopyGroup, replacement: oth_job_script.Replacement, depth: int
) -> tuple[str, list[ImportNote]]:
    """Return the text of a test.yaml, and the notes on the template."""
    first = group.tests[0]
    lines = template_lines(first)
    notes = list(_notes_of_template(first, lines))
    run, options, more = _run_keys(group, oth_job_script.directives(lines), replacement)
    notes += more
    body = replacement.script(lines)
    launch = oth_job_script.launched(body)
    if launch and launch[1].get("nodes", run["nodes"]) == run["nodes"]:
        body = launch[0]
        run |= launch[1]
    else:
        run["launcher"] = "none"
    _require_numbers(group, run)
    notes += _leave_one_number_of_tasks(group, run)
    out = [*_head(first), *_build(first), *_parameters(group), *_environment(first)]
    out += ["run:\n", *_pairs({key: value for key, value in run.items() if value})]
    out += [f"  options: [{', '.join(map(_scalar, options))}]\n"] if options else []
    out.append("  script: |\n")
    out += [f"    {line}\n" if line else "\n" for line in _script(body, lines, group, depth)]
    out += _verify(first)
    return "".join(out), notes


def _head(test: OthTest) -> Iterator[str]:
    """Yield what a test is."""
    yield f"# Imported from {test.folder} of the OLCF Test Harness.\n"
    yield f"app: {_scalar(test.application.name)}\n"
    if test.is_stopped:
        yield "tags: [stopped]\n"
    if test.copies > 1:
        yield f"repeat: {test.copies}\n"


def _environment(test: OthTest) -> Iterator[str]:
    """Yield the variables of a test, without those that have a fault."""
    faulty = dict(faults_of_variables(test.variables))
    if variables := {name: text for name, text in test.variables.items() if name not in faulty}:
        yield "environment:\n"
        yield from _pairs(variables)


def _pairs(values: Mapping[str, str]) -> list[str]:
    """Return the lines of a mapping inside of another."""
    return [f"  {key}: {_scalar(value)}\n" for key, value in values.items()]


def _script(body: list[str], lines: list[str], group: CopyGroup, depth: int) -> Iterator[str]:
    if oth_job_script.is_login_shell(lines):
        yield "[ ! -r /etc/profile ] || . /etc/profile  # the template asked for a login shell"
    yield f'. "$SEATRIAL_TEST/{"../" * depth}{SHELL}" "{group.name_of}"'
    yield from body


def _build(test: OthTest) -> Iterator[str]:
    """Yield the lines of ``build``: the command, in a copy of the application's sources."""
    command = test.values["build_cmd"].strip()
    has_sources = (test.application / "Source").is_dir()
    yield "build:\n"
    yield "  sources: [../Source]\n" if has_sources else ""
    yield "  script: |\n"
    yield "    set -e -o pipefail\n"
    yield f"    {'' if has_sources else 'mkdir Source; '}cd Source\n"
    yield "    export RGT_TEST_BUILD_DIR=$PWD RGT_APP_SOURCE_DIR=$PWD\n"
    yield f"    {_command(command, '.')} 2>&1 | tee output_build.txt\n"


def _verify(test: OthTest) -> Iterator[str]:
    """Yield the lines of ``verify`` and ``metrics``."""
    yield "verify:\n  - {exit_code: any}\n"
    yield f"  - {{script: {CHECK}, codes: oth, time_limit: 1h}}\n"
    if test.values.get("report_cmd"):
        yield f"  - {{script: {REPORT}, codes: any, time_limit: 1h}}\n"
    if _mentions(test, "metrics.txt"):
        yield "metrics: {from: oth}\n"


def _parameters(group: CopyGroup) -> Iterator[str]:
    if not group.axes:
        return
    yield "parameters:\n"
    for name, values in group.axes.items():
        yield f"  {name}: [{', '.join(map(_scalar, values))}]\n"
    if group.zipped and len(group.zipped) > 1:
        yield f"zip: [[{', '.join(group.zipped)}]]\n"


def _run_keys(
    group: CopyGroup,
    directives: Sequence[oth_job_script.Directive],
    replacement: oth_job_script.Replacement,
) -> tuple[dict[str, str], list[str], list[ImportNote]]:
    """Return what a test asks for: keys of ``run``, further arguments of sbatch, and notes.

    Directives come first, then the ini file. Raises ValueError where copies cannot be one test.
    """
    first = group.tests[0]
    run, options, notes = _of_directives(group, directives, replacement)
    run.setdefault("nodes", _size(replacement.text("__nodes__")))
    for key, of in (("tasks", "total_processes"), ("tasks_per_node", "processes_per_node")):
        if of in first.values:
            run.setdefault(key, _size(replacement.text(f"__{of}__")))
    if "walltime" not in run and not any(each.key == "walltime" for each in directives):
        run["walltime"] = _walltime(group, replacement.text("__walltime__"))
        if not run["walltime"]:
            line, text = first.lines.get("walltime", 0), f"walltime {first.values['walltime']}"
            notes.append(_not_carried(first.file, line, text))
    return run, options, notes


def _of_directives(
    group: CopyGroup,
    directives: Sequence[oth_job_script.Directive],
    replacement: oth_job_script.Replacement,
) -> tuple[dict[str, str], list[str], list[ImportNote]]:
    """Return what the directives of a template ask for, as ``_run_keys`` does."""
    run: dict[str, str] = {}
    options: list[str] = []
    notes: list[ImportNote] = []
    for each in directives:
        value = replacement.text(each.value)
        if each.key == "options" and (words := _option(value)):
            options += words
        elif each.key and not (asked := _asked(group, each.key, value)):
            key = "" if each.key in ("?", "options") else f"{each.key} "
            text = f"{key}{each.value}"
            notes.append(_not_carried(group.tests[0].template, each.line, text))
        elif each.key:
            run[each.key] = asked
    return run, options, notes


def _not_carried(file: Path, line: int, what: str) -> ImportNote:
    remedy = "; give run.walltime, which is 10m here" if what.startswith("walltime ") else ""
    return ImportNote(file, line, f"`{what.strip()}` was not carried over{remedy}")


def _asked(group: CopyGroup, key: str, value: str) -> str:
    """Return the value of a key of ``run``; "" if it cannot have this one."""
    if key in ("?", "options") or "__" in value:
        return ""
    if key == "walltime":
        return _walltime(group, value)
    return _size(value) if key in oth_job_script.SIZES else _text(value)


def _size(value: str) -> str:
    """Return a whole number, or the parameter that has it; "" for anything else."""
    match = _NUMBER.fullmatch(value)
    return (match[1] or match[2]) if match else ""


_NUMBER = re.compile(r"([1-9][0-9]{0,8})|\$\{(\w+)\}", re.ASCII)


def _text(value: str) -> str:
    """Return a text as ``run`` has it, with parameters in braces; "" if it has braces itself."""
    text = re.sub(r"\$\{(\w+)\}", "", value)
    return "" if re.search("[{}$]", text) else value.replace("${", "{")


def _option(text: str) -> list[str]:
    """Return the words of an option of sbatch as ``run`` has them; none if they cannot be given to
    it."""
    words = [] if "__" in text else [_text(word) for word in shlex.split(text)]
    return [] if not all(words) or any(faults_of_options(words)) else words


def _require_numbers(group: CopyGroup, run: Mapping[str, str]) -> None:
    """Raise ValueError if a size is a parameter with values that are no numbers."""
    for key in oth_job_script.SIZES:
        values = group.axes.get(run.get(key, ""), [])
        if not all(map(_NUMBER.fullmatch, values)):
            raise ValueError(f"{key} {listed(values, 3)}: no numbers above 0")


def _leave_one_number_of_tasks(group: CopyGroup, run: dict[str, str]) -> Iterator[ImportNote]:
    """Take ``tasks_per_node`` away beside ``tasks``, which a test has no place for; yield a note on
    each copy in which it is not what follows."""
    if "tasks" not in run or "tasks_per_node" not in run:
        return
    asked = run.pop("tasks_per_node")
    for test in group.tests:
        nodes, tasks, of_node = (
            int(test.values.get(each, each)) for each in (run["nodes"], run["tasks"], asked)
        )
        if (follows := -(-tasks // nodes)) != of_node:
            text = f"{of_node} processes of each node were not carried over: the total counts, and"
            yield ImportNote(
                test.file, 0, f"{text} {tasks} on {count(nodes, 'node')} are {follows}"
            )


def _walltime(group: CopyGroup, text: str) -> str:
    """Return a walltime as a test has it; "" if it is none. Raises ValueError if it is a parameter
    with values that are not plain numbers."""
    scheduler = group.tests[0].template.name.partition(".")[0]
    if match := re.fullmatch(r"\$\{(\w+)\}", text):
        values = group.axes.get(match[1], [])
        if not all(map(_PLAIN_NUMBER.fullmatch, values)):
            raise ValueError(f"walltime {listed(values, 3)}: no plain numbers")
        return f"{60 // oth_job_script.UNITS_OF_A_MINUTE.get(scheduler, 1)} * {match[1]}"
    try:
        minutes = oth_job_script.minutes_of(text, scheduler)
    except ValueError:
        return ""
    if not minutes:  # no limit
        return ""
    return f"{minutes:g}m" if minutes == int(minutes) else f"{round(minutes * 60)}s"


_PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def _notes_of_template(test: OthTest, lines: list[str]) -> Iterator[ImportNote]:
    for place, key in oth_job_script.unknown_keys(lines, test.values):
        text = f"`__{key}__` is not in {TEST_FILE}: it stays as it is, as with the harness"
        yield ImportNote(test.template, place, text)
    scheduler = test.template.name.partition(".")[0]
    others = re.compile(rf"\b({_OTHER_LAUNCHERS[scheduler]})\b")
    for place, line in enumerate(lines, 1):
        if not line.lstrip().startswith("#") and (match := others.search(line)):
            yield ImportNote(test.template, place, f"`{match[1]}` is started as it is written")
    if scheduler == "lsf":
        text = "a template of LSF: its variables (LSB_...) and jsrun are not there under Slurm"
        yield ImportNote(test.template, 0, text)


def _mentions(test: OthTest, word: str) -> bool:
    """Return whether a script of the test or one that it links to has a word in it."""
    for where, _, names in os.walk(test.folder / SCRIPTS):
        for path in (Path(where) / name for name in names):
            found = head(path, LONGEST_SCRIPT)
            if found and not found.cut(LONGEST_SCRIPT) and word in found.text:
                return True
    return False


def _scalar(value: str) -> str:
    """Return a value as a scalar of YAML; a whole number stays one."""
    if re.fullmatch(r"0|[1-9][0-9]{0,17}", value):
        return value
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML and "{" not in value:
        return value
    return json.dumps(value, ensure_ascii=False)
