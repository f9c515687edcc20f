"""Finding the tests of a suite, and reading files of every kind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InvalidFiles, UsageError
from tests.model.suite.helpers import Place

GOOD = "app: a\nrun: {script: 'true'}\n"


def names(place: Place, *suites: Path) -> list[str]:
    return list(place.plan(*suites).tests)


def test_a_tests_name_is_its_path_below_the_suite(place: Place) -> None:
    for name in ("b", "a/deep/er", "a", "c.d-e_f+g", "00"):
        place.write(name, GOOD)
    assert names(place) == ["00", "a", "a/deep/er", "b", "c.d-e_f+g"]
    assert names(place, place.suite / "a/deep") == ["er"]
    assert names(place, place.suite / "b") == ["b"]
    assert names(place, place.suite / "b/test.yaml") == ["b"]


def test_a_marked_root_gives_a_test_the_same_name_from_wherever_it_is_asked_for(
    place: Place,
) -> None:
    place.write("a/b", GOOD)
    place.write("a", GOOD)
    (place.suite / "suite.yaml").touch()
    below = place.suite / "a"
    for given in (below / "b", below / "b/test.yaml", below / "../a/b"):
        assert names(place, given) == ["a/b"]
    assert names(place, below) == ["a", "a/b"]


def test_a_root_above_a_folder_that_the_path_only_passes_through_is_none(place: Place) -> None:
    place.write("x/t", GOOD)
    (place.suite / "y").mkdir()
    (place.suite / "y/suite.yaml").touch()
    assert names(place, place.suite / "y/../x") == ["t"]


def test_hidden_folders_links_and_trials_are_passed_over(place: Place) -> None:
    for name in (".git", "__pycache__", "trials/one/builds/k", "here"):
        place.write(name, GOOD)
    (place.suite / "trials/one/trial.json").touch()
    (place.suite / "here/loop").symlink_to(place.suite)
    (place.suite / "there").symlink_to(place.suite / "here")
    assert names(place) == ["here"]
    assert names(place, place.suite / "there") == ["there"]


def test_two_suites_at_once(place: Place) -> None:
    place.write("one/a", GOOD)
    place.write("two/b", GOOD)
    assert names(place, place.suite / "one", place.suite / "two") == ["a", "b"]


def test_a_test_that_is_named_twice_is_there_once(place: Place) -> None:
    place.write("a", GOOD)
    relative = Path(os.path.relpath(place.suite))
    assert names(place, place.suite, place.suite / "a", relative, place.suite) == ["a"]


def test_two_tests_of_one_name_are_a_fault(place: Place) -> None:
    place.write("one/a", GOOD)
    place.write("two/a", "# below\n" + GOOD)
    with pytest.raises(InvalidFiles) as raised:
        place.plan(place.suite / "one", place.suite / "two")
    assert raised.value.faults == [
        f"{place.suite}/two/a/test.yaml:2: the test 'a' is also in "
        f"{place.suite}/one/a/test.yaml; rename one folder"
    ]


def test_no_test_at_all(place: Place) -> None:
    place.suite.mkdir()
    with pytest.raises(UsageError, match=r"suite: no test\.yaml here or below"):
        place.plan()
    place.write("a", GOOD)
    (place.folder / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty: no test\.yaml here or below"):
        place.plan(place.suite, place.folder / "empty")


@pytest.mark.parametrize("name", ["no/such", "x" * 300, "a/test.yaml/b"])
def test_a_path_that_is_not_there(place: Place, name: str) -> None:
    place.write("a", GOOD)
    with pytest.raises(UsageError, match="no such file or folder"):
        place.plan(place.suite / name)


def test_a_file_that_is_no_test(place: Place) -> None:
    with pytest.raises(UsageError, match=r"machine\.yaml: a test is a file called test\.yaml"):
        place.plan(place.folder / "machine.yaml")


def test_a_folder_with_a_name_that_no_test_can_have(place: Place) -> None:
    place.write("a b", GOOD)
    assert place.fault() == (
        "suite/a b/test.yaml:1: the folder's name 'a b' must be letters, digits, ._+-"
    )


@contextlib.contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """With the rights of an ordinary user, who may pass through the folders above this one."""
    for upper in (folder, *folder.parents):
        if not upper.stat().st_mode & 0o001:
            upper.chmod(upper.stat().st_mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_may_not_be_read_is_told(place: Place) -> None:
    place.write("a", GOOD).chmod(0)
    place.write("b/c", GOOD).parent.parent.chmod(0)
    secret = place.folder / "secret"
    secret.mkdir(mode=0o700)
    place.write("d", f"{GOOD}inputs: [{secret}/file]\n")
    with as_nobody(place.folder):
        faults = place.faults()
    assert faults == [
        "suite/a/test.yaml:1: cannot be read: Permission denied",
        "suite/b:1: cannot be read: Permission denied",
        "suite/d/test.yaml:3: inputs[0]: secret/file does not exist",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_no_selection_leads_around_a_folder_that_may_not_be_read(place: Place) -> None:
    place.write("a", GOOD)
    place.write("b/c", GOOD).parent.parent.chmod(0)
    with as_nobody(place.folder), pytest.raises(InvalidFiles) as raised:
        place.plan(keyword="a")
    assert str(raised.value).endswith("1 fault; nothing was done.")


@pytest.mark.parametrize(
    ("names", "collide"),
    [
        (["a", "a/b"], True),
        (["a/b", "a"], True),
        (["x/a/b/c", "x/a"], True),
        (["a", "./a"], True),
        (["stdout/x"], True),
        (["a", "ab", "a.b/c", "stdout.txt"], False),
        (["x/a", "x/b"], False),
    ],
)
def test_an_input_below_another_is_refused(place: Place, names: list[str], collide: bool) -> None:
    place.test(inputs=[{"source": "test.yaml", "name": name} for name in names])
    if collide:
        assert "is there already" in place.fault()
    else:
        assert len(place.cases()) == 1


@pytest.mark.parametrize("name", ["build.log", "seatrial.sh", "seatrial.result.new", "seatrial.x"])
def test_a_source_named_as_a_builds_own_files_is_refused(place: Place, name: str) -> None:
    place.test(build={"sources": [name], "script": "true"})
    (place.suite / "t" / name).write_text("mine")
    fault = f"build.sources[0]: {name} is a name of Seatrial's own in a build; rename it"
    assert place.fault().endswith(fault)


# ---- files of every kind ------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
NOTHING = "stands for nothing that is written above"
TOO_MUCH = "holds more than 200000 values or 40 levels; make it smaller"

EVIL: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "1: is empty"),
    "comment": ("# nothing\n", "1: is empty"),
    "scalar": ("just words", "1: 'just words' is not a mapping of keys to values"),
    "list": ("\n- a\n", "2: a list is not a mapping of keys to values"),
    "bomb": (BOMB, f"6: {TOO_MUCH}"),
    "alias of itself": ("app: x\nabout: &a [*a]\n", f"2: *a {NOTHING}"),
    "unknown alias": ("app: x\nabout: *a\n", f"2: *a {NOTHING}"),
    "deep flow": ("\na: " + "[" * 500_000, f"2: {TOO_MUCH}"),
    "deep maps": ("{a: " * 100_000, f"1: {TOO_MUCH}"),
    "deep lists": ("- " * 400_000, f"1: {TOO_MUCH}"),
    "wide": (f"a: &a [{'1, ' * 20_000}]\nb: [{'*a, ' * 10}]", f"2: {TOO_MUCH}"),
    "large": (b"#" * (10 << 20), "1: has 10485760 bytes; the most that is read is 1048576"),
    "not UTF-8": (b"app: x\nabout: \xff\n", "2: is not UTF-8 text; save the file as UTF-8"),
    "UTF-16": ("app: x".encode("utf-16"), "1: is not UTF-8 text; save the file as UTF-8"),
    "NUL": ("app: x\nabout: \0\n", "2: is not valid YAML: control characters are not allowed"),
    "bell": ("app: x\n\nabout: \a\n", "3: is not valid YAML: control characters are not allowed"),
    "open": ("app: x\nabout: [a\n", "2: is not valid YAML: a bracket is opened here and not "),
    "tab": ("app: x\nrun:\n\tscript: x\n", "3: is not valid YAML: a tab; YAML is indented with "),
    "two": ("app: x\n---\napp: y\n", "2: a second document starts; remove the ---"),
    "key": ("app: x\n[a, b]: y\n", "2: the file: a key must be a word"),
    "deep key": ("app: x\nrun:\n  ? {a: b}\n  : c\n", "3: run: a key must be a word"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVIL)
def test_a_file_that_is_no_document(place: Place, kind: str) -> None:
    content, fault = EVIL[kind]
    place.write("t", content)
    assert place.fault().startswith(f"suite/t/test.yaml:{fault}")


QUOTES = "put the whole text in quotes"
NO_YAML = {
    "app: x\nrun:\n  script: x\n\tnodes: 1\n": "4: a tab; YAML is indented with blanks",
    "app:\n- a\n-\tb: c\n": "3: a tab; YAML is indented with blanks",
    'app: x\nabout: "abc\nrun:\n  script: x\n': "2: a quote is opened here and never closed",
    "app: x\nabout: 'it's me'\n": f"2: text behind ': \"s me'\"; {QUOTES}, and write a single",
    "app: x\nmemory: {memory}GiB\n": f"2: text behind }}: 'GiB'; {QUOTES}",
    "app: x\nabout: a: b\n": f"2: a text with `: ` in it; {QUOTES}",
    "app:x\nrun: {}\n": "1: a blank is missing behind the colon of app",
    "app: x\n run:\n": "2: it belongs to the text of line 1, as it is indented more",
    "app: x\nrun:\n  script: x\n nodes: 1\n": "4: indented by 1 blank, as nothing above is",
    "app: x\ntags:\n  - a\n  b: c\n": "4: stands between items of a list; begin it with `- `",
    "app: x\nno colon\nrun: {}\n": "2: 'no colon' has no colon behind a key",
    "app: x\nabout: %x\n": f"2: % cannot begin a value; {QUOTES}",
    "%x\napp: x\n": "1: % cannot begin a line",
    "app: x\nabout: @x\n": f"2: @ cannot begin a value; {QUOTES}",
    "app: x\nabout: `x`\n": f"2: ` cannot begin a value; {QUOTES}",
    "app: x\nabout: , a\n": f"2: , cannot begin a value; {QUOTES}",
    "app: x\nfile: *.dat\n": f"2: * begins a name of YAML's own; {QUOTES}",
    'app: x\nmatches: "a\\d+"\n': "2: \\d means nothing in double quotes; write the text in s",
    "app: x\nscript: | echo\n": f"2: behind | the text begins on the next line; or {QUOTES}",
    "app: x\ntags: - a\n": "2: a list with - begins on the line below its key; or write [a, b]",
    "app: x\ntags: [a, b\nrun: {}\n": "2: a bracket is opened here and not closed; line 3 is read",
    "app: x\nrun: {a: x b: 1}\n": "2: a colon in a text, or no comma before its key",
    "app: x\na: {find: [a-z]+, unit: s}\n": f"2: text behind ]: '+, unit: s}}'; {QUOTES}",
}


@pytest.mark.parametrize("content", NO_YAML)
def test_what_is_no_yaml_is_told_in_words_of_its_writer(place: Place, content: str) -> None:
    place.write("t", content)
    line, _, words = NO_YAML[content].partition(": ")
    assert place.fault().startswith(f"suite/t/test.yaml:{line}: is not valid YAML: {words}")


SPOILT: dict[str, tuple[str, str]] = {
    "twice": ("app: b", "3: app: is given twice, first in line 1"),
    "tag": ("about: !!str 5", "3: about: the tag tag:yaml.org,2002:str is not known; remove it"),
    "own tag": ("tags: !x [a]", "3: tags: the tag !x is not known; remove it"),
    "code": (
        "about: !!python/object/apply:os.system [ls]",
        "3: about: the tag tag:yaml.org,2002:python/object/apply:os.system is not known; remove it",
    ),
    "merge": (
        "environment: {<<: {A: b}}",
        "3: environment.<<: merge keys are not known; use inherits, or write it out",
    ),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_yaml_that_is_refused(place: Place, kind: str) -> None:
    line, fault = SPOILT[kind]
    place.write("t", f"{GOOD}{line}\n")
    assert place.faults()[0] == f"suite/t/test.yaml:{fault}"


def test_special_files_are_not_read(place: Place) -> None:
    for name, make in (
        ("pipe", lambda path: os.mkfifo(path)),
        ("zero", lambda path: path.symlink_to("/dev/zero")),
        ("gone", lambda path: path.symlink_to("nothing")),
    ):
        (place.suite / name).mkdir(parents=True)
        make(place.suite / name / "test.yaml")
    assert place.faults() == [
        "suite/gone/test.yaml:1: cannot be read: No such file or directory",
        "suite/pipe/test.yaml:1: is not a regular file; write a text file in its place",
        "suite/zero/test.yaml:1: is not a regular file; write a text file in its place",
    ]


def test_a_file_with_thousands_of_faults_gives_the_first_thousand(place: Place) -> None:
    place.write("t", GOOD + "".join(f"k{i}: 1\n" for i in range(20_000)))
    assert len(place.faults()) == 1000


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("y", "y"), ("off", "off"),
        ("true", True), ("False", False), ("1_000", "1_000"), ("0x10", 16), ("0o17", 15),
        ("017", 17), ("+7", 7), ("-0", 0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0),
        ("-1.5E-3", -0.0015), ("1e400", "1e400"), (".inf", ".inf"), (".nan", ".nan"),
        ("12:30", "12:30"), ("2026-01-02", "2026-01-02"), ("1.2.3", "1.2.3"), ("1e", "1e"),
        ("123456789012345678", 123456789012345678),
        ("12345678901234567890", "12345678901234567890"),
        ("3.14159265358979323846264338327950288", 3.141592653589793),
        ("9" * 200, "9" * 200), ("'5'", "5"), ('"true"', "true"), ("'x\0'", None),
    ],
)  # fmt: skip
def test_scalars_as_yaml_1_2_has_them(place: Place, written: str, value: Any) -> None:
    place.write("t", f"{GOOD}parameters: {{p: [{written}]}}\n")
    if value is None:
        assert "control characters" in place.fault()
        return
    ((bound,),) = place.bound()
    assert (type(bound), bound) == (type(value), value)


def test_a_byte_order_mark_and_other_line_ends(place: Place) -> None:
    place.write("t", b"\xef\xbb\xbfapp: a\r\nrun:\r\n  script: |\r\n    a\r\n    b\r\n")
    assert place.plan().tests["t"].run.script == "a\nb\n"


def test_anchors_and_aliases(place: Place) -> None:
    place.write("t", f"{GOOD}tags: &words [x, y]\nmodules: *words\n")
    test = place.plan().tests["t"]
    assert test.tags == test.modules == ["x", "y"]


def test_the_command_line_lists_and_tells_faults(place: Place, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("seatrial")), "list", "-m", "machine.yaml"]
    place.test(parameters={"p": [1, 2]})
    done = subprocess.run([*command, "suite"], cwd=tmp_path, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (0, 4)
    assert [line.split()[-1] for line in lines[1:3]] == ["t{p=1}@gcc", "t{p=2}@gcc"]
    assert lines[3] == "2 cases of 1 test on m"
    place.write("u", "app: [\n")
    done = subprocess.run([*command, "suite"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("suite/u/test.yaml:1: is not valid YAML: ")
    ending = "\n1 fault; nothing was done. Without u: -k 'not u'\n"
    assert done.stderr.endswith(ending)


def test_the_recipe_of_a_build_is_a_file_or_a_name_that_easybuild_looks_for(place: Place) -> None:
    (place.suite / "t").mkdir(parents=True)
    (place.suite / "t/here.eb").write_text("name = 'x'\n")
    found = {}
    for recipe in ("here.eb", "zlib-1.3.eb"):
        place.test(build={"easybuild": recipe}, run={"nodes": 1})
        (test,) = place.plan().tests.values()
        assert test.build is not None
        found[recipe] = test.build.easybuild
    assert found == {"here.eb": str(place.suite / "t/here.eb"), "zlib-1.3.eb": "zlib-1.3.eb"}
