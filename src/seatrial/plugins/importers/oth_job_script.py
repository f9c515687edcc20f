"""The job script of a test: what a template of the OLCF Test Harness asks of the scheduler, and its
lines as a script of a suite.

    asked = directives(lines)                   # {"nodes": "__nodes__", "walltime": ...}
    script = Replacement(values).script(lines)  # __key__ is replaced as the harness does

The harness replaces ``__key__`` anywhere, also in comments and quotes. Some keys are its own: the
folders of a test, which ``oth.sh`` beside the suite gives to each run. The formats are those of
github.com/olcf/olcf-test-harness.
"""

import configparser
import os
import re
import shlex
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.reading import read_text

OWN_FOLDERS = {
    "scripts_dir": "$RGT_TEST_SCRIPTS_DIR",
    "working_dir": "$RGT_TEST_WORK_DIR",
    "results_dir": "$RGT_TEST_RUNARCHIVE_DIR",
    "build_dir": "$RGT_TEST_BUILD_DIR",
    "harness_id": "$RGT_TEST_ID",
}
"""The keys of the harness's own, and the variables of oth.sh that have their values."""

_DIRECTIVE = re.compile(r"#(SBATCH|BSUB|PBS)\s+(.*?)\s*$")
_KEY = re.compile(r"__([A-Za-z0-9_]+?)__")
_LOGIN = re.compile(r"#!\s*\S*/(?:env\s+)?(?:ba|z|k)?sh\s+(?:\S+\s+)*-\S*l")

SIZES = ("nodes", "tasks", "tasks_per_node", "threads_per_task")
"""The keys of ``run`` that are whole numbers."""

# What a directive's option is in a test; "" where Seatrial does it itself.
_OPTIONS = {
    "SBATCH": {
        **dict.fromkeys(("-N", "--nodes"), "nodes"),
        **dict.fromkeys(("-t", "--time"), "walltime"),
        **dict.fromkeys(("-n", "--ntasks"), "tasks"),
        "--ntasks-per-node": "tasks_per_node",
        **dict.fromkeys(("-c", "--cpus-per-task"), "threads_per_task"),
        **dict.fromkeys(("-p", "--partition"), "partition"),
        **dict.fromkeys(("-A", "--account"), "account"),
        **dict.fromkeys(("-q", "--qos"), "qos"),
        "--reservation": "reservation",
        **dict.fromkeys(("-J", "--job-name", "-o", "--output", "-e", "--error"), ""),
    },
    "BSUB": {
        "-nnodes": "nodes",
        "-n": "tasks",
        "-W": "walltime",
        "-q": "partition",
        "-P": "account",
        **dict.fromkeys(("-J", "-o", "-e"), ""),
    },
    "PBS": {
        "-l": "resources",
        "-q": "partition",
        "-A": "account",
        **dict.fromkeys(("-N", "-o", "-e", "-j"), ""),
    },
}
_PROCESSES = ("ppn", "mpiprocs")  # of a node, in a chunk of PBS


class Directive(NamedTuple):
    """What a line asks of the scheduler: its place, and the key of ``run`` in a test with its
    value; no key: Seatrial does it itself; "options": a further argument of sbatch; "?": not
    known."""

    line: int
    key: str
    value: str


def directives(lines: Sequence[str]) -> list[Directive]:
    """Return what the directives of a template ask for."""
    found = []
    for place, line in enumerate(lines, 1):
        if match := _DIRECTIVE.match(line):
            asked = _asked(match[1], re.sub(r"(^|\s)#.*", "", match[2]))
            found += [Directive(place, key, value) for key, value in asked]
    return found


def _asked(scheduler: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of each option of a directive: ``-N 2 --ntasks=4``."""
    try:
        words = shlex.split(text)
    except ValueError:  # half a pair of quotes
        yield "?", text
        return
    while words:
        option, value = _option(words, _OPTIONS[scheduler])
        key = _OPTIONS[scheduler].get(option)
        if key == "resources":
            for each in value.split(","):
                yield from _resource(each)
        elif key is not None:
            yield key, value
        else:
            key = "options" if scheduler == "SBATCH" else "?"
            yield key, shlex.join([option, *_values(words)])


def _option(words: list[str], known: Mapping[str, str]) -> tuple[str, str]:
    """Take an option from words, and its value if it is ``known``."""
    word = words.pop(0)
    name, equals, value = word.partition("=")
    if equals and name in known:
        return name, value
    if word in known:
        return word, words.pop(0) if words and not words[0].startswith("-") else ""
    if word[:2] in known and not word.startswith("--"):
        return word[:2], word[2:]  # -N2
    return word, ""


def _values(words: list[str]) -> Iterator[str]:
    """Take the words before the next option."""
    while words and not words[0].startswith("-"):
        yield words.pop(0)


def _resource(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a resource of PBS, such as ``select=2:ncpus=8:mpiprocs=4``."""
    name, _, value = text.partition("=")
    if name == "walltime":
        yield "walltime", value
    elif name in ("nodes", "select") and "+" not in value:
        number, *parts = value.split(":")
        yield "nodes", number
        for part in parts:
            what, _, of_node = part.partition("=")
            yield ("tasks_per_node", of_node) if what in _PROCESSES else ("?", f"-l {name}={part}")
    else:
        yield "?", f"-l {text}"


class Replacement:
    """Replaces keys by their values. A key of ``parameters`` becomes a variable of the script."""

    def __init__(self, values: Mapping[str, str], parameters: Mapping[str, str] = {}) -> None:
        self.values = {**values, **OWN_FOLDERS}
        self.parameters = parameters

    def text(self, text: str) -> str:
        """Return text with the values of its keys; a key that is not known stays."""
        return _KEY.sub(lambda match: self._value(match[1], match[0]), text)

    def _value(self, key: str, written: str) -> str:
        if key in self.parameters:
            return f"${{{self.parameters[key]}}}"
        return self.values.get(key, written)

    def script(self, lines: Sequence[str]) -> list[str]:
        """Return the lines of a script: without directives and the first line with ``#!``."""
        kept = [
            line.rstrip()
            for place, line in enumerate(lines)
            if not _DIRECTIVE.match(line) and not (place == 0 and line.startswith("#!"))
        ]
        return [self.text(line) for line in kept]


def is_login_shell(lines: Sequence[str]) -> bool:
    """Return whether a template asks for a login shell (``#!/bin/bash -l``)."""
    return bool(lines) and _LOGIN.match(lines[0]) is not None


def unknown_keys(lines: Sequence[str], values: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return line and key of each ``__key__`` that nobody defines, once each."""
    found: dict[str, int] = {}
    for place, line in enumerate(lines, 1):
        for key in _KEY.findall(line):
            if key not in values and key not in OWN_FOLDERS:
                found.setdefault(key, place)
    return [(place, key) for key, place in found.items()]


def may_be_variables(lines: Sequence[str], keys: set[str]) -> bool:
    """Return whether each of these keys may become a variable of the script, and it does the same:
    none stands in single quotes or behind a backslash, where the shell does not look for variables,
    nor where only a literal means what it does: in a name, a range ``{1..8}`` or a descriptor
    ``2>``. A script with a text of its own (``<<WORD``) is not looked through: the answer is no."""
    text = "\n".join(line for line in lines if not _DIRECTIVE.match(line))
    if "<<" in text.replace("<<<", ""):
        return False
    single = _single_quoted(text)
    for match in _KEY.finditer(text):
        if match[1] not in keys:
            continue
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if single[match.start()] or line.count("'") % 2 or _LITERAL_BEFORE.search(line):
            return False
        if _LITERAL_AFTER.match(text, match.end()):
            return False
    return True


# A backslash; a name of a variable; the start of a range. A name that is assigned, called, or the
# rest of one; a range; a descriptor; a word in braces.
_LITERAL_BEFORE = re.compile(r"(\\|\$[\w{#!]*|[{,]|\.\.)$")
_LITERAL_AFTER = re.compile(r"\w*(\+?=|\[|\(|\.\.|[<>},])")


def _single_quoted(text: str) -> list[bool]:
    """Return for each character of a script whether it is in single quotes."""
    inside: list[bool] = []
    state = ""  # the quote, or # in a comment
    place = 0
    while place < len(text):
        character = text[place]
        inside.append(state == "'")
        if character == "\\" and state in ("", '"') and place + 1 < len(text):
            place += 1
            inside.append(False)
        else:
            state = _state_after(character, text[place - 1 : place], state)
        place += 1
    return inside


def _state_after(character: str, before: str, state: str) -> str:
    """Return the quote or the comment that a script is in after a character."""
    if state == "#":
        return "" if character == "\n" else "#"
    if state:
        return "" if character == state else state
    if character in "'\"":
        return character
    return "#" if character == "#" and not before.strip() else ""


_LAUNCHED = re.compile(r"(\s*)srun\s+(.*)")
_SIZES = {
    "-n": "tasks",
    "--ntasks": "tasks",
    "-N": "nodes",
    "--nodes": "nodes",
    "--ntasks-per-node": "tasks_per_node",
    "-c": "threads_per_task",
    "--cpus-per-task": "threads_per_task",
}


def launched(script: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """Return a script with ``$LAUNCH`` in place of srun, and the sizes that srun was given; None
    unless there is a single srun, and its options are sizes alone: numbers or parameters."""
    lines = [place for place, line in enumerate(script) if re.search(r"\bsrun\b", _code(line))]
    if len(lines) != 1 or not (match := _LAUNCHED.fullmatch(script[lines[0]])):
        return None
    try:
        words = shlex.split(match[2], posix=False)
    except ValueError:
        return None
    sizes = _sizes_of(words)
    if sizes is None or not words or "tasks" not in sizes:
        return None
    rest = match[2][match[2].index(words[0]) :]
    changed = [*script]
    changed[lines[0]] = f"{match[1]}$LAUNCH {rest}"
    return changed, sizes


def _sizes_of(words: list[str]) -> dict[str, str] | None:
    """Take the options of srun from its words and return the sizes that they give; None if one
    gives no size."""
    sizes: dict[str, str] = {}
    while words and words[0].startswith("-"):
        option, value = _option(words, _SIZES)
        number = re.fullmatch(r"([0-9]+)|\$\{(\w+)\}", value)
        if option not in _SIZES or number is None:
            return None
        sizes[_SIZES[option]] = number[1] or number[2]
    return sizes


def _code(line: str) -> str:
    """Return a line of a script without its comment."""
    return re.sub(r"(^|\s)#.*", "", line)


def minutes_of(text: str, scheduler: str) -> float:
    """Return a walltime in minutes as its scheduler reads it: ``10`` are minutes (of PBS seconds),
    ``1:30`` are minutes and seconds of Slurm and PBS, hours and minutes of LSF (which may name a
    host behind a slash), ``1-12`` a day and twelve hours. Raises ValueError."""
    written = text.strip().partition("/")[0] if scheduler == "lsf" else text.strip()
    match = _WALLTIME.fullmatch(written)
    if match is None:
        raise ValueError(f"{text!r} is no walltime")
    days, *parts = match.groups()
    numbers = [float(part) for part in parts if part is not None]
    if days:  # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = (*numbers, 0.0, 0.0)[:3]
        return float(days) * 1440 + hours * 60 + minutes + seconds / 60
    if len(numbers) == 3:
        return numbers[0] * 60 + numbers[1] + numbers[2] / 60
    if scheduler == "lsf":
        return numbers[0] if len(numbers) == 1 else numbers[0] * 60 + numbers[1]
    if len(numbers) == 2:
        return numbers[0] + numbers[1] / 60
    return numbers[0] / UNITS_OF_A_MINUTE.get(scheduler, 1)


UNITS_OF_A_MINUTE = {"pbs": 60}
"""How many of the units of a plain number are a minute, by scheduler; else one."""
_PART = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_WALLTIME = re.compile(f"(?:{_PART}-)?{_PART}(?::{_PART})?(?::{_PART})?")


# ---- ini -----------------------------------------------------------------------------------------
#
# Read the files of the OLCF Test Harness: tests, a machine's defaults, lists of tests.
#
# for folder in find_tests(Path("applications")):
#     test = read_test(folder, environment)     # OthTest; raises ValueError with place and reason


TEST_FILE = "rgt_test_input.ini"
SCRIPTS = "Scripts"
STOPPED = ".kill_test"
FROM_ENVIRONMENT = "<obtain_from_environment>"
TEMPLATES = ("slurm.template.x", "pbs.template.x", "lsf.template.x")
"""The names of templates, the most wanted first: a suite has one."""

_SECTIONS = ("Replacements", "EnvVars")
REQUIRED = ("job_name", "nodes", "walltime", "batch_filename", "build_cmd", "check_cmd")
WHOLE_NUMBERS = ("nodes", "total_processes", "processes_per_node")
LIMIT = 1 << 20  # bytes of such a file

_ini_KEY = re.compile(r"\s*([^#;\[=:\s][^=:]*?)\s*[=:]")


class OthTest(Struct, frozen=True):
    """A test: its folder, what ``[Replacements]`` and ``[EnvVars]`` say, the line of each key, its
    template. Values that the harness takes from the environment are there as they are known."""

    folder: Path
    values: dict[str, str]
    variables: dict[str, str]
    lines: dict[str, int]
    template: Path
    #: Variables of the harness's environment that are not known.
    unknown: tuple[str, ...] = ()
    #: Sections of the ini file that are none of the harness's two, with their keys.
    others: dict[str, list[str]] = {}
    #: How many of it the harness starts at a time.
    copies: int = 1

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def application(self) -> Path:
        return self.folder.parent

    @property
    def file(self) -> Path:
        return self.folder / SCRIPTS / TEST_FILE

    @property
    def is_stopped(self) -> bool:
        """Whether people stopped it: the harness does not start it again."""
        return (self.folder / SCRIPTS / STOPPED).exists()


class TestList(Struct, frozen=True):
    """An input file, the folder of the applications, the line and the number of copies of each
    (application, test), and the lines that ask something of the harness itself."""

    __test__ = False

    file: Path
    folder: Path
    lines: dict[tuple[str, str], int]
    copies: Counter[tuple[str, str]]
    tasks: list[int] = []


def find_tests(root: Path) -> Iterator[Path]:
    """Yield the folders of tests at or below a folder, in the order of their names."""
    for where, folders, files in os.walk(root):
        folders.sort()
        if Path(where).name == SCRIPTS and TEST_FILE in files:
            folders.clear()
            yield Path(where).parent


def read_test(folder: Path, environment: Mapping[str, str]) -> OthTest:
    """Return the test in a folder. ``environment`` has the variables of the harness (``RGT_...``)
    that are known. Raises ValueError, with the file and its line, and OSError."""
    path = folder / SCRIPTS / TEST_FILE
    sections, lines = _sections(path)
    if "Replacements" not in sections:
        raise ValueError(f"{path}: has no section [Replacements]")
    values = dict(sections["Replacements"])
    written = sections.get("EnvVars", {}).items()
    variables = {key.upper(): _literal(value) for key, value in written}
    known = {name: _literal(value) for name, value in environment.items()}
    unknown = [
        *_take_from_environment(values, environment),
        *_take_from_environment(variables, known),
    ]
    _require_values(path, values, lines)
    others = {name: [*keys] for name, keys in sections.items() if name not in _SECTIONS}
    for name in TEMPLATES:
        if (template := folder / SCRIPTS / name).is_file():
            return OthTest(folder, values, variables, lines, template, tuple(unknown), others)
    raise ValueError(f"{folder / SCRIPTS}: has no template: {', '.join(TEMPLATES)}")


def _literal(value: str) -> str:
    """Return the value of a variable for ``environment``: the harness replaces nothing in it."""
    return value.replace("$", "$$")


def _take_from_environment(given: dict[str, str], environment: Mapping[str, str]) -> list[str]:
    """Replace the values that the harness takes from its environment by those, or by a variable of
    the shell. Returns the variables that are not known."""
    unknown = []
    for key, value in given.items():
        if value == FROM_ENVIRONMENT:
            variable = f"RGT_{key.upper()}"
            given[key] = environment.get(variable, f"${{{variable}}}")
            if variable not in environment:
                unknown.append(variable)
    return unknown


def _require_values(path: Path, values: Mapping[str, str], lines: Mapping[str, int]) -> None:
    """Raise ValueError if a key is missing in an ini file, or a number is none."""
    for key in REQUIRED:
        if key not in values:
            raise ValueError(f"{path}: [Replacements] has no {key}")
    for key in WHOLE_NUMBERS:
        if key in values and not re.fullmatch("[1-9][0-9]*", values[key]):
            remedy = "; give it with --machine-ini" if "$" in values[key] else ""
            place = f"{path}:{lines.get(key, 0)}"
            raise ValueError(f"{place}: {key}: {values[key]!r} is no number above 0{remedy}")


def read_machine(path: Path) -> dict[str, str]:
    """Return the variables that a machine's file gives to the harness: ``RGT_`` and the key in
    upper case. Raises ValueError and OSError."""
    sections, _ = _sections(path)
    return {
        f"RGT_{key.upper()}": value
        for section in sections.values()
        for key, value in section.items()
        if value
    }


def read_list(path: Path) -> TestList:
    """Return the tests of an input file (``Path_to_tests = P``, ``Test = app test [N]``). Raises
    ValueError, with its line, and OSError."""
    found = TestList(path, path.parent, {}, Counter())
    for place, line in enumerate(read_text(path.parent, path.name, LIMIT).splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        first = words[0].lower()
        if first == "path_to_tests" and len(words) == 3:
            named = os.path.expandvars(os.path.expanduser(words[2]))  # noqa: PTH111
            found = replace(found, folder=path.parent / named)
        elif first == "test" and (copies := _copies_of(words)) is not None:
            test = words[2], words[3]
            found.lines.setdefault(test, place)
            found.copies[test] += copies
        elif first == "harness_task":
            found.tasks.append(place)
        else:
            known = "`Path_to_tests = FOLDER`, `Test = APPLICATION TEST` or `harness_task = WORDS`"
            raise ValueError(f"{path}:{place}: {line.strip()!r} is no line {known}")
    if not found.lines:
        raise ValueError(f"{path}: has no line `Test = APPLICATION TEST`")
    return found


def _copies_of(words: Sequence[str]) -> int | None:
    """Return how many copies of a test ``Test = app test [N]`` asks for; None for other words."""
    match words:
        case [_, _, _, _]:
            return 1
        case [_, _, _, _, number] if _COPIES.fullmatch(number):
            return int(number)
    return None


_COPIES = re.compile("[0-9]{1,6}", re.ASCII)


def _sections(path: Path) -> tuple[dict[str, dict[str, str]], dict[str, int]]:
    """Return the sections of an ini file, those of DEFAULT in each, and the line of each key."""
    text = read_text(path.parent, path.name, LIMIT)
    parser = configparser.ConfigParser()  # as the harness has it: keys in lower case
    try:
        parser.read_string(text, str(path))
        sections = {name: dict(parser[name]) for name in parser.sections()}
    except configparser.Error as error:
        faulty, reason = _fault(error)
        place = f"{path}:{faulty}" if faulty else f"{path}"
        raise ValueError(f"{place}: {reason}") from None
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _ini_KEY.match(line):
            lines.setdefault(match[1].lower(), number)
    return sections, lines


def _fault(error: configparser.Error) -> tuple[int, str]:
    """Return the line of a fault in an ini file, 0 where none is known, and what to do."""
    match error:
        case configparser.DuplicateOptionError(lineno=line):
            return line or 0, f"{error.option} is twice in [{error.section}]; leave one"
        case configparser.DuplicateSectionError(lineno=line):
            return line or 0, f"[{error.section}] is there twice; make them one"
        case configparser.MissingSectionHeaderError(lineno=line):
            said = f"{error.line.strip()!r} is in no section"
            return line, f"{said}; a section begins with a line such as `[Replacements]`"
        case configparser.ParsingError(errors=[(line, text), *_]):
            return line, f"{literal_eval(text).strip()!r} is no line `key = value`"
    return 0, error.message.replace("\n", " ")
