from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from seatrial.judge import python_function
from seatrial.judge.checks import find_faults
from seatrial.judge.metrics import measure
from seatrial.judge.python_function import FunctionFailed, figures_by
from seatrial.model.codes import CHECK_ERROR, NO_FIGURE, WRONG_ANSWER
from seatrial.model.figures import MetricValue
from tests.programs import Workplace, until

from .helpers import a_check, a_test


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("test", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "stdout").write_text("12\n")
    return tmp_path / "test", tmp_path / "run"


def write(folder: Path, body: str, before: str = "") -> str:
    (folder / "figures.py").write_text(f"{before}\ndef read(run):\n    {body}\n")
    return "figures.py:read"


def test_a_function_reads_the_run_it_is_in_and_its_neighbours(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = places
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPATH", f":{os.environ.get('PYTHONPATH', '')}")  # :, where it starts
    (folder / "helper.py").write_text("factor = 2\n")
    (run / "json.py").write_text("raise SystemExit('the job wrote this')\n")
    (run / "helper.py").write_text("raise SystemExit('and this')\n")
    body = (
        "n = int(open('stdout').read()) * helper.factor; "
        "return {'rate': (n, 'GB/s', 'lower'), 'n': 1}"
    )
    named = write(folder, body, "import json, helper")
    figures, findings = measure(a_test(folder, metrics={"python": named}), run)
    assert figures == [
        MetricValue("rate", 24.0, "GB/s", "lower"),
        MetricValue("n", 1.0, "1", "higher"),
    ]
    assert findings == []
    assert sorted(path.name for path in folder.iterdir()) == ["figures.py", "helper.py"]


def test_a_check_by_a_function_knows_the_parameters(places: tuple[Path, Path]) -> None:
    folder, run = places
    (folder / "answer.py").write_text("def check(run, names):\n    return names['edge'] < 10\n")
    test = a_test(folder, verify=[a_check(exit_code=0), a_check(python="answer.py:check")])
    assert find_faults(test, run, 0, {"edge": 8}) == []
    (finding,) = find_faults(test, run, 0, {"edge": 12})
    assert (finding.code, finding.text) == (WRONG_ANSWER, "answer.py:check: it returned False")


def test_a_function_in_a_folder_with_a_colon(places: tuple[Path, Path]) -> None:
    folder, run = places
    folder = folder / "a:b.py:c"
    folder.mkdir()
    named = write(folder, "return {'a': 1}")
    (figure,), findings = measure(a_test(folder, metrics={"python": named}), run)
    assert (figure.value, findings) == (1, [])


def test_what_a_function_prints_is_seen_nowhere(
    places: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    folder, run = places
    named = write(
        folder, "print('out'); print('err', file=sys.stderr); return {'a': 1}", "import sys"
    )
    (figure,), _ = measure(a_test(folder, metrics={"python": named}), run)
    assert figure.value == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('triad')", "KeyError: 'triad' (figures.py:3)"),
        ("raise ValueError('one\\ntwo')", "ValueError: one (figures.py:3)\ntwo"),
        ("import json; json.loads('{')", "(figures.py:3)"),
        ("return 5", "ValueError: a dict of 1 to 10000 figures must be returned, not <class 'int'"),
        ("return {}", "not a dict of 0"),
        ("return {'a': True}", "True is not a number"),
        ("return {'a': '5'}", "'5' is not a number"),
        ("return {'a': None}", "TypeError: float() argument must be"),
        ("return {'a': (1, 'MB/s', 'more')}", "better is 'more'"),
        ("return {'a': (1, 'MB/s')}", "ValueError: not enough values to unpack"),
        ("return {7: 1.0}", "7 is not a name or unit"),
        ("return {'': 1.0}", "'' is not a name or unit"),
        ("return {'a' * 201: 1.0}", "is not a name or unit"),
        ("return {'a': (1.0, '', 'higher')}", "'' is not a name or unit"),
        ("return {str(i): 1.0 for i in range(10_001)}", "not a dict of 10001"),
        ("return {f'{i:0150}': 1.0 for i in range(9999)}", "that is too much"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("return {'a': len(bytearray(9 << 30))}", "MemoryError (figures.py:"),
        ("import os; os._exit(0)", "ended with exit code 0 and without an answer"),
        ("import os; os.kill(os.getpid(), 11)", "was ended by signal 11"),
        ("raise Exception('\\x1b[2J')", r"Exception: \x1b[2J"),
        ("import apart", "ModuleNotFoundError: No module named 'apart'"),
        ("syntax error", "SyntaxError: invalid syntax (figures.py:3)"),
    ],
)
def test_a_function_that_fails_is_a_check_error(
    places: tuple[Path, Path], body: str, said: str
) -> None:
    folder, run = places
    named = write(folder, body)
    figures, (finding,) = measure(a_test(folder, metrics={"python": named}), run)
    assert (figures, finding.code) == ([], CHECK_ERROR)
    assert finding.text.startswith("figures.py:read")
    assert said in finding.text


def test_a_function_that_is_not_there(places: tuple[Path, Path]) -> None:
    folder, run = places
    write(folder, "return {}")
    with pytest.raises(FunctionFailed, match=r"figures\.py has no function other") as failed:
        figures_by("figures.py:other", folder, run)
    assert "python_function.py" not in str(failed.value)  # no place of Seatrial's own
    with pytest.raises(FunctionFailed, match="is missing"):
        figures_by("other.py:read", folder, run)
    with pytest.raises(FunctionFailed, match="FileNotFoundError"):
        figures_by("figures.py:read", folder, run / "gone")


def test_what_it_prints_and_leaves_behind_does_no_harm(places: tuple[Path, Path]) -> None:
    folder, run = places
    body = (
        "print('[]'); os.system('echo []'); os.write(1, b'x' * 1000000); "
        "threading.Thread(target=time.sleep, args=(600,)).start(); return {'a': float('nan')}"
    )
    named = write(folder, body, "import os, threading, time")
    figures, (finding,) = measure(a_test(folder, metrics={"python": named}), run)
    assert (figures, finding.code) == ([], NO_FIGURE)
    assert finding.text == "metric a: nan is not a finite number"


@pytest.mark.parametrize(
    ("end", "said"),
    [("return {'a': 2.0}", ""), ("os._exit(3)", "ended with exit code 3 and without an answer")],
)
def test_a_daemon_that_it_starts_holds_nothing_up(
    places: tuple[Path, Path], end: str, said: str
) -> None:
    """It has left the session, and keeps stdout open."""
    folder, run = places
    body = (
        "child = os.fork(); child or (os.setsid(), time.sleep(20), os._exit(0)); "
        f"(run / 'pid').write_text(str(child)); {end}"
    )
    named = write(folder, body, "import os, time")
    began = time.monotonic()
    figures, findings = measure(a_test(folder, metrics={"python": named}), run)
    assert time.monotonic() - began < 10
    os.kill(int((run / "pid").read_text()), signal.SIGKILL)
    if said:
        assert said in findings[0].text
    else:
        assert [figure.value for figure in figures] == [2.0]


def test_a_function_that_hangs_is_ended_with_its_children(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = places
    monkeypatch.setattr(python_function, "FUNCTION_SECONDS", 4.0)
    body = (
        "child = os.fork(); child and (run / 'pid').write_text(str(child)); "
        "signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(600)"
    )
    named = write(folder, body, "import os, signal, time")
    with pytest.raises(FunctionFailed, match="took longer than 4 s"):
        figures_by(named, folder, run)
    child = int((run / "pid").read_text())
    until(lambda: not _runs(child), "its child to be gone")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_nothing_of_seatrial_is_named_where_the_function_is_called_wrongly(
    places: tuple[Path, Path],
) -> None:
    folder, run = places
    (folder / "figures.py").write_text(
        "def read():\n    return {}\n\ndef more(run):\n    return 5\n"
    )
    for name in ("read", "more"):
        with pytest.raises(FunctionFailed, match=f"^figures.py:{name}: ") as caught:
            figures_by(f"figures.py:{name}", folder, run)
        assert "python_function" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def check(run, names): pass", ""),
        ("if True:\n    check = lambda run, names: None", ""),
        ("from helper import other as check", ""),
        ("from helper import *", ""),
        ("globals()['check'] = print", ""),
        ("def __getattr__(name): return print", ""),
        ("def chek(run, names): pass\ndef _own(): check = 5", "no function check; it has chek"),
        ("", "answer.py has no function check; it has none"),
        ("class A:\n    def check(self): pass", "no function check; it has A"),
        ("\ndef check(:", "answer.py:2: invalid syntax"),
        ("x = '\0'", "null byte"),
    ],
)
def test_a_function_that_is_not_there_is_told_before_the_run(
    tmp_path: Path, source: str, fault: str
) -> None:
    place = Workplace(tmp_path)
    place.local()
    folder = place.test("t", verify=[{"python": "answer.py:check"}])
    (folder / "answer.py").write_text(source)
    done = place.seatrial("list", "suite", "-m", "machine.yaml")
    assert (done.code, fault in done.err) == (2 if fault else 0, True)
    assert not fault or f"{folder.relative_to(tmp_path)}/test.yaml:" in done.err
