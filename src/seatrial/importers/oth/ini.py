"""Read the files of the OLCF Test Harness: tests, a machine's defaults, lists of tests.

for folder in find_tests(Path("applications")):
    test = read_test(folder, environment)     # OthTest; raises ValueError with place and reason
"""

import configparser
import os
import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from seatrial.lazy import regex
from seatrial.verify.reading import read_text

TEST_FILE = "rgt_test_input.ini"
SCRIPTS = "Scripts"
STOPPED = ".kill_test"
FROM_ENVIRONMENT = "<obtain_from_environment>"
TEMPLATES = ("slurm.template.x", "pbs.template.x", "lsf.template.x")
"""The names of templates, the most wanted first: a suite has one."""

REQUIRED = ("job_name", "nodes", "walltime", "batch_filename", "build_cmd", "check_cmd")
WHOLE_NUMBERS = ("nodes", "total_processes", "processes_per_node")
LIMIT = 1 << 20  # bytes of such a file

_KEY = regex(r"\s*([^#;\[=:\s][^=:]*?)\s*[=:]")


class OthTest(Struct, frozen=True):
    """A test: its folder, what ``[Replacements]`` and ``[EnvVars]`` say, the line of each key, its
    template. Values that the harness takes from the environment are there as they are known."""

    folder: Path
    values: dict[str, str]
    variables: dict[str, str]
    lines: dict[str, int]
    template: Path
    asked: tuple[str, ...] = ()  # variables of the environment that are not known

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
    """An input file, the folder of the applications, and the line of each (application, test)."""

    __test__ = False

    file: Path
    folder: Path
    lines: dict[tuple[str, str], int]


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
    variables = {key.upper(): value for key, value in sections.get("EnvVars", {}).items()}
    asked = []
    for given in (values, variables):
        for key, value in given.items():
            if value == FROM_ENVIRONMENT:
                variable = f"RGT_{key.upper()}"
                given[key] = environment.get(variable, f"${{{variable}}}")
                asked += [variable] if variable not in environment else []
    for key in REQUIRED:
        if key not in values:
            raise ValueError(f"{path}: [Replacements] has no {key}")
    for key in WHOLE_NUMBERS:
        if key in values and not re.fullmatch("[1-9][0-9]*", values[key]):
            remedy = "; give it with --machine-ini" if "$" in values[key] else ""
            place = f"{path}:{lines.get(key, 0)}"
            raise ValueError(f"{place}: {key}: {values[key]!r} is no number above 0{remedy}")
    for name in TEMPLATES:
        if (template := folder / SCRIPTS / name).is_file():
            return OthTest(folder, values, variables, lines, template, tuple(asked))
    raise ValueError(f"{folder / SCRIPTS}: has no template: {', '.join(TEMPLATES)}")


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
    folder = path.parent
    lines: dict[tuple[str, str], int] = {}
    for place, line in enumerate(read_text(path.parent, path.name, LIMIT).splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        first, number = words[0].lower(), len(words)
        if first == "path_to_tests" and number == 3:
            folder = path.parent / os.path.expandvars(os.path.expanduser(words[2]))  # noqa: PTH111
        elif first == "test" and number in (4, 5) and (number == 4 or words[4].isdigit()):
            lines.setdefault((words[2], words[3]), place)
        elif first != "harness_task":
            known = "`Path_to_tests = FOLDER`, `Test = APPLICATION TEST` or `harness_task = WORDS`"
            raise ValueError(f"{path}:{place}: {line.strip()!r} is no line {known}")
    if not lines:
        raise ValueError(f"{path}: has no line `Test = APPLICATION TEST`")
    return TestList(path, folder, lines)


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
        if found := _KEY.match(line):
            lines.setdefault(found[1].lower(), number)
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
