r"""Work that may take any time, done apart from the trial and within bounds: a Python file, a
script of a test, a search of text for patterns.

answer = run_apart(file, ["-P"], question, 60.0)     # what it writes on stdout
values, = find_all([r"Triad:\s+(\S+)"], text)        # ["5693.6"]
"""

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seatrial.files import is_of_host, open_descriptor, remove_file
from seatrial.judge import search_process
from seatrial.judge.reading import HostFailed
from seatrial.judge.search_process import Match, find

PORTION = 1 << 18
LOOK_SECONDS = 0.5  # between two looks at whether a silent process has ended
_ENDED = os.WEXITED | os.WNOWAIT | os.WNOHANG


class Apart(Exception):
    """The process gave no answer; the text says why: ``took longer than 60 s``."""


END = b"\0"
"""What a process ends its answer with, which is JSON and so has none."""


def run_apart(file: str, options: list[str], question: bytes, seconds: float) -> bytes:
    """Return what ``file`` writes on stdout up to END when it gets ``question`` on stdin; what it
    left behind may hold stdout open for longer. ``options``: of the interpreter. Raises HostFailed
    if this host cannot start it, Apart if it fails or takes longer than ``seconds``. It and its
    children are then killed, in any case."""
    try:
        process = subprocess.Popen(
            [sys.executable, *options, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        if is_of_host(error):
            raise HostFailed(f"a process cannot be started: {error.strerror}") from error
        raise Apart(f"could not be started: {error.strerror}") from error
    ends = time.monotonic() + seconds
    with process:
        try:
            answer = _answer_to(process, question, ends)
            if answer.endswith(END):
                _kill(process)
                return answer[: -len(END)]
            code = _exit_code(process, ends - time.monotonic())
        except TimeoutError:
            raise Apart(f"took longer than {seconds:g} s") from None
        finally:
            if process.returncode is None:
                _kill(process)
    if code < 0:
        raise Apart(f"was ended by signal {-code}")
    raise Apart(f"ended with exit code {code} and without an answer")


def _answer_to(process: subprocess.Popen[bytes], question: bytes, ends: float) -> bytes:
    """Write the question and return the answer: up to END, or up to the end of stdout or of the
    process where there is none. Raises TimeoutError at ``ends``, by the monotonic clock."""
    assert process.stdin is not None and process.stdout is not None
    into, out_of = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(into, False)
    left, answer = memoryview(question), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(into, selectors.EVENT_WRITE)
        ready.register(out_of, selectors.EVENT_READ)
        while (wait := ends - time.monotonic()) > 0:
            events = ready.select(min(wait, LOOK_SECONDS))
            if not events and os.waitid(os.P_PID, process.pid, _ENDED) is not None:
                return bytes(answer)  # what it left behind holds stdout open
            for key, _ in events:
                if key.fd == into:
                    try:
                        left = left[os.write(into, left[:PORTION]) :]
                    except BrokenPipeError:  # it reads no more, and may answer
                        left = left[:0]
                    if not left:
                        ready.unregister(into)
                        process.stdin.close()
                    continue
                data = os.read(out_of, PORTION)
                answer += data
                if not data or data.endswith(END):
                    return bytes(answer)
    raise TimeoutError


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was not reaped, so that the number is its own, and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _exit_code(process: subprocess.Popen[bytes], limit: float) -> int:
    """Return the exit code of a process, or minus the signal that ended it; kill what it left
    behind. Raises TimeoutError after ``limit`` seconds, when it is killed."""
    late = threading.Event()

    def end() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(max(limit, 0.0), end)  # wait() with a limit looks only now and then
    timer.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    timer.cancel()
    timer.join()
    _kill(process)
    exit_code = process.wait()
    if late.is_set():
        raise TimeoutError
    return exit_code


MOST_OUTPUT = 64 << 20  # bytes of a file that it writes

# dash and bash take one limit a command; KiB and blocks of 512 bytes.
_LIMITED = 'ulimit -v "$1"; ulimit -f "$2"; shift 2; exec "$@"'


def run_script(
    script: Path,
    folder: Path,
    output: Path,
    environment: Mapping[str, str],
    limit: float,
    memory: int,
) -> int:
    """Run a script in ``folder``, with its output to a new file, and return its exit code, or minus
    the signal that ended it. It and its children are killed after ``limit`` seconds. ``memory``:
    bytes that each of its processes may have. Raises TimeoutError and OSError."""
    script = script.absolute()
    command = [str(script)] if os.access(script, os.X_OK) else ["bash", str(script)]
    limits = [str(memory >> 10), str(MOST_OUTPUT >> 9)]
    remove_file(output, missing_ok=True)  # perhaps a link or a FIFO that the job left
    descriptor = open_descriptor(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    return _exit_code(process, limit)


# ---- searches ------------------------------------------------------------------------------------
#
# Python's matching may take time that grows with the square of the text, or exponentially, and
# holds the interpreter's lock meanwhile. The main thread searches a page of text at most, for a
# fraction of a second. All other searches run in a separate process, which can be killed: the
# program ``search_process``.


PAGE = 8192
QUICK_SECONDS = 0.25
SEARCH_SECONDS = 30.0
MAX_MATCHES = 1_000_000


# Python can interrupt a search between its steps alone, and takes a repetition as one step, which
# may take long with a high count.
_HIGH_COUNT = re.compile(r"\{\d*,?\d{3,}\}")
_RETURN = r"\\r|\r"  # as an escape, or as YAML makes it of one in double quotes


class SearchFailed(Exception):
    """A search could not be carried out; the text says why."""


class SearchTookLong(Exception):
    """A search in the main thread took longer than QUICK_SECONDS: repeat it in another thread."""


def find_all(patterns: list[str], text: str, most: int = MAX_MATCHES) -> list[list[str]]:
    r"""Return for each pattern the texts of its group, or of the whole match if it has no group: up
    to ``most`` matches, each up to LONGEST_MATCH characters. ``^`` and ``$`` match at the ends of
    lines; a carriage return ends one, too, unless a pattern has ``\r`` itself. Raises SearchFailed
    if it takes too long, SearchTookLong in the main thread, re.error for an invalid pattern."""
    return [[found for found, _ in each] for each in _search(patterns, text, most)]


def find_placed(pattern: str, text: str) -> list[tuple[str, int]]:
    """Return the texts of the group of a pattern, as ``find_all`` does, each with the number of the
    line in which it begins, from 1."""
    (matches,) = _search([pattern], text, MAX_MATCHES)
    placed: list[tuple[str, int]] = []
    line, before = 1, 0
    for word, start in matches:
        if start < before:  # a group that looks ahead may begin behind the next match
            line, before = 1, 0
        line, before = line + text.count("\n", before, start), start
        placed.append((word, line))
    return placed


def _search(patterns: list[str], text: str, most: int) -> list[list[Match]]:
    if "\r" in text and not any(re.search(_RETURN, pattern) for pattern in patterns):
        text = text.replace("\r", "\n")  # as many characters: places stay
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread and len(text) <= PAGE and not any(map(_HIGH_COUNT.search, patterns)):
        with _interrupted_after(QUICK_SECONDS):
            return [find(pattern, text, most) for pattern in compiled]

    request = {"patterns": patterns, "most": most, "seconds": SEARCH_SECONDS, "parent": os.getpid()}
    question = json.dumps(request).encode() + b"\n" + text.encode("utf-8", errors="surrogatepass")
    try:
        answer = run_apart(search_process.__file__, ["-I", "-S"], question, SEARCH_SECONDS)
        matches: list[list[Match]] = json.loads(answer)
    except (Apart, ValueError) as error:
        raise SearchFailed(f"{error} for {len(text)} characters; make it more specific") from None
    return matches


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise SearchTookLong in the block after so many seconds. Python's matching calls the handlers
    of signals between its steps."""

    def interrupt(number: int, frame: object) -> None:
        raise SearchTookLong

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
