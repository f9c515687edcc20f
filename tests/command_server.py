"""A process that has Seatrial loaded and forks itself for each command that a test starts.

The start of an interpreter and its imports take 0.4 s of a core. That is most of what most commands
do, and the tests start thousands. A forked command is a process of its own all the same, with its
own arguments, environment, directory, streams, signals and exit code, and it enters at
``seatrial.cli.main`` as the installed script does. What depends on the start of the interpreter
(its variables, its memory) is tested with ``Workplace.fresh``.

One server for each environment, for all processes of a run of pytest: the first that asks for it
starts it. It ends with that run.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple, NoReturn, Protocol

import msgspec
from jinja2 import FileSystemBytecodeCache

COMMAND = Path(sys.executable).with_name("seatrial")
SERVE = "from tests.command_server import main; main()"  # a module's name would be the command's
LARGEST_REQUEST = 1 << 18  # bytes: arguments and environment
SERVERS = "PYTEST_SERVERS_OF_COMMANDS"
"""The variable with the folder of the sockets of a run's servers. Whoever is no run of pytest has
servers of its own."""

# What a process that ignores them lets its children ignore, too.
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

# Variables that the interpreter reads when it starts: a fork cannot obey them.
OF_THE_INTERPRETER = ("PYTHON", "LD_", "LC_", "LANG", "OPENBLAS", "OMP_")


# Runs the command with some modules' constants replaced.
CHANGED = """
import importlib, json, sys
for name, value in json.loads(sys.argv.pop(1)).items():
    module, _, constant = name.rpartition(".")
    module = importlib.import_module("seatrial." + module)
    assert hasattr(module, constant), name
    setattr(module, constant, value)
from seatrial.cli import main
sys.argv[0] = "seatrial"
main()
"""

# Imported at their first use, by Seatrial (see ``seatrial.lazy``) and by others.
LATE = (
    "ClusterShell.NodeSet",
    "anyio._backends._asyncio",
    "concurrent.futures",
    "difflib",
    "encodings.utf_8_sig",
    "multiprocessing",
    "numpy.ma",
    "numpy.random",
    "re2",
    "yaml",
)

# Commands that use SciPy, and what they import of it at their first use.
STATISTICAL = {"advise", "best", "compare", "curves", "history", "ratio", "report", "scaling"}
STATISTICAL |= {"serve", "suspects", "tune", "usage"}
SCIPY = ("scipy.optimize", "scipy.special", "scipy.stats")

# The line of the command, how many of its words are Seatrial's, the folder, the environment, the
# umask, the ignored signals, the constants.
Request = tuple[list[str], int, str, dict[str, str], int, list[int], dict[str, Any]]


class Process(Protocol):
    """What tests ask of a command that they started; a Popen has it, too."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class ForkedCommand:
    """A command that the server forked. Its exit code comes over a pipe once it has ended."""

    def __init__(self, words: Sequence[str], status: int) -> None:
        self._words = list(words)
        self._status = status
        self.pid = int(_line(status))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._read_end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
            self._read_end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read_end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(int(_line(self._status)))
        os.close(self._status)
        self._status = -1


class Streams(NamedTuple):
    """Where a command writes to. Its standard input is empty."""

    out: IO[bytes]
    err: IO[bytes]


def command_line(words: Sequence[str], constants: Mapping[str, float] = {}) -> list[str]:
    """Return the line that starts `seatrial` with these words, some constants replaced."""
    if constants:
        return [sys.executable, "-c", CHANGED, json.dumps(dict(constants)), *words]
    return [sys.executable, str(COMMAND), *words]


def start(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: Streams,
    constants: Mapping[str, float] | None = None,
    python: str = sys.executable,
) -> Process:
    """Start `seatrial` with these words. ``constants``, by names such as ``trial.alarm.LIMIT``, are
    replaced in its modules: limits that a test cannot wait for. ``python`` is the interpreter of
    the environment that has it."""
    line = command_line(words, constants or {})
    if _asks_of_the_interpreter(env):
        return start_fresh(line, cwd, env, streams)
    mask = os.umask(0)
    os.umask(mask)
    ignored = [number for number in PASSED_ON if signal.getsignal(number) is signal.SIG_IGN]
    asked = [line, len(words), str(cwd), dict(env), mask, ignored, dict(constants or {})]
    request = json.dumps(asked).encode()
    assert len(request) < LARGEST_REQUEST, "too long for the server of commands"
    reading, writing = os.pipe()
    files = [streams.out.fileno(), streams.err.fileno(), writing]
    try:
        socket.send_fds(_server_of(python), [request], files)
    finally:
        os.close(writing)
    return ForkedCommand(words, reading)


def start_fresh(
    line: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Streams
) -> Process:
    """Start a command with an interpreter of its own."""
    return subprocess.Popen(
        line,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=streams.out,
        stderr=streams.err,
    )


def _asks_of_the_interpreter(env: Mapping[str, str]) -> bool:
    names = {name for name in {*env, *os.environ} if name.startswith(OF_THE_INTERPRETER)}
    return any(env.get(name) != os.environ.get(name) for name in names)


@functools.cache
def _server_of(python: str) -> socket.socket:
    """Connect to the server of an environment, which is started unless there is one."""
    folder = os.environ.get(SERVERS) or _own_folder().name
    address = f"{folder}/{sha256(python.encode()).hexdigest()[:16]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        try:
            theirs.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            _start_server(python, theirs)
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST_REQUEST)
    ours.connect(address)
    return ours


@functools.cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="seatrial-servers-")


def _start_server(python: str, requests: socket.socket) -> None:
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    subprocess.Popen(
        [python, "-c", SERVE, str(requests.fileno()), str(run)],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads must not fork
        stdin=subprocess.DEVNULL,
        pass_fds=[requests.fileno()],
    )


def _line(pipe: int) -> str:
    """Read to the end of a line, byte by byte: another line may follow."""
    text = b""
    while not text.endswith(b"\n"):
        byte = os.read(pipe, 1)
        assert byte, "the server of commands has ended; its message is on stderr"
        text += byte
    return text.decode()


# ---- the server ---------------------------------------------------------------------------------


def serve(requests: socket.socket, run: int) -> bool:
    """Fork a process for each request. Return True in such a process, which then is the command,
    and False in the server once the process ``run`` (a pidfd) has ended."""
    _load_everything()
    return _answer(requests, run, with_scipy=False)


def _answer(requests: socket.socket, run: int, *, with_scipy: bool) -> bool:
    """Fork for each request as ``serve`` says. Those that need SciPy go to a server that has it."""
    wake_up, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    running: dict[int, int] = {}  # process -> where to tell its end
    other: socket.socket | None = None  # of the server that has SciPy
    while True:
        ready, _, _ = select.select([requests.fileno(), wake_up, run], [], [])
        if run in ready:
            return False
        if wake_up in ready:
            os.read(wake_up, 4096)
            _tell_ends(running)
        if requests.fileno() in ready:
            request, streams, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 3)
            asked: Request = json.loads(request)
            if not with_scipy and STATISTICAL.intersection(asked[0]):
                if other is None:
                    other, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                    other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST_REQUEST)
                    if os.fork() == 0:
                        return _serve_statistics(theirs, run, [requests, other], streams)
                    theirs.close()
                socket.send_fds(other, [request], streams)
                for stream in streams:
                    os.close(stream)
                continue
            for constant in asked[-1]:
                _holders(constant)  # searched for once, and in no fork
            pid = os.fork()
            if pid == 0:
                requests.detach()  # its descriptor is closed and will be another file's
                _become(asked, streams)
                return True
            *both, status = streams
            for stream in both:
                os.close(stream)
            os.write(status, b"%d\n" % pid)
            running[pid] = status


def _serve_statistics(
    requests: socket.socket, run: int, others: Sequence[socket.socket], streams: Sequence[int]
) -> bool:
    """Serve as a fork of the server that has SciPy, whose import takes 0.6 s of a core. Every fork
    would take longer if the first server had it."""
    for each in others:
        each.close()
    for stream in streams:
        os.close(stream)
    for name in SCIPY:
        importlib.import_module(name)
    gc.freeze()
    return _answer(requests, run, with_scipy=True)


def _tell_ends(running: dict[int, int]) -> None:
    for pid in list(running):
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            status = running.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # the test did not wait for it
                os.write(status, b"%d\n" % code)
            os.close(status)


def _load_everything() -> None:
    """Import what commands import, and make what they make at the first use of a kind of file, so
    that none needs to. That is half of the time that most commands take. Templates are compiled
    once, as modules are: to compile them takes longer than to make a page."""
    import seatrial

    for module in pkgutil.walk_packages(seatrial.__path__, "seatrial."):
        importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    for kind in _structs(msgspec.Struct):
        with contextlib.suppress(NameError, TypeError):  # it is read from no file
            msgspec.json.Decoder(kind)  # what msgspec knows of a Struct it keeps in the class
    compiled = FileSystemBytecodeCache(str(Path(__file__).with_name("__pycache__")))
    for name in ("seatrial.show.web.render", "seatrial.show.report.render"):
        sys.modules[name].environment().bytecode_cache = compiled
    importlib.import_module("tests.typical_commands").run_typical_commands()
    gc.collect()
    gc.freeze()  # a search for garbage would write to what is shared


def _structs(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _structs(kind)


def handle_as_usual(number: signal.Signals) -> None:
    """Handle a signal as an interpreter does that has just been started."""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    signal.signal(number, usual)


def _become(request: Request, streams: list[int]) -> None:
    """Be as a process that has just been started with these words."""
    line, count, folder, env, mask, ignored, constants = request
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for each in PASSED_ON:
        if each in ignored:
            signal.signal(each, signal.SIG_IGN)
        else:
            handle_as_usual(each)
    for number, stream in zip((1, 2), streams, strict=False):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.umask(mask)
    sys.path[:] = [entry for entry in sys.path if entry not in ("", str(Path.cwd()))]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.orig_argv = line
    sys.argv = [str(COMMAND), *line[len(line) - count :]]
    for name, value in constants.items():
        for module in _holders(name):
            setattr(module, name.rpartition(".")[2], value)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


@functools.cache
def _holders(name: str) -> list[ModuleType]:
    """Return the modules that have a constant: its own, and those that imported it from there."""
    module, _, constant = name.rpartition(".")
    old = getattr(sys.modules[f"seatrial.{module}"], constant)
    loaded = [sys.modules[name] for name in sys.modules if name.startswith("seatrial.")]
    return [each for each in loaded if each.__dict__.get(constant) is old]


def _run() -> NoReturn:
    """Run the command and end as an interpreter ends, except that memory is not taken apart: to
    write to each object takes longer than most commands."""
    import seatrial.cli

    code: object = 0
    try:
        seatrial.cli.main()
    except SystemExit as end:
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120  # as the interpreter's
    os._exit(code if isinstance(code, int) else 0)


def main() -> None:
    if serve(socket.socket(fileno=int(sys.argv[1])), os.pidfd_open(int(sys.argv[2]))):
        _run()
