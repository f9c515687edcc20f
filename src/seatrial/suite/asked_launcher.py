"""The launcher that a test asks for: a word (``launcher: srun``), or a parameter that has the word,
so that launchers can be compared as an axis."""

from __future__ import annotations

import typing
from collections.abc import Mapping

from seatrial.errors import suggest
from seatrial.file_model import Scalar
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.model import Launcher, RunSpec
from seatrial.suite.quantities import DEFAULT

LAUNCHERS: tuple[Launcher, ...] = typing.get_args(Launcher)


def asked_launcher(run: RunSpec, parameters: Mapping[str, Scalar]) -> Launcher | None:
    """Return the launcher that a test asks for with these parameters; None where the machine
    decides. Raises ExpressionError."""
    written = run.launcher
    if written is None or written == DEFAULT or written in LAUNCHERS:
        return _launcher(written)
    word = parameters.get(written)
    if isinstance(word, str) and (word == DEFAULT or word in LAUNCHERS):
        return _launcher(word)
    message = f"{written} gives {word!r}: it must be one of {_choices()}"
    raise ExpressionError(message, "run", "launcher")


def fault_of_launcher(word: str) -> str:
    """Return why a word that is no name of a parameter is no launcher; "" if it is one."""
    if word == DEFAULT or word in LAUNCHERS:
        return ""
    near = suggest(word, LAUNCHERS)
    return f"{word!r} is none of {_choices()}, and no parameter" + (near and f"; {near}")


def _launcher(word: str | None) -> Launcher | None:
    return next((launcher for launcher in LAUNCHERS if launcher == word), None)


def _choices() -> str:
    return ", ".join((*LAUNCHERS, DEFAULT))
