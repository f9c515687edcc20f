"""What commands do: a module for each, loaded when its command runs.

The options of ``seatrial history`` and its help are in ``cli/history.py``, what it does is in
``cli/actions/history.py``. So a help and the completion of a shell load nothing that only a run of
the command needs.

    # cli/history.py
    @click.command("history")
    @click.argument("metric")
    @click.pass_obj
    @action
    def command() -> None:
        '''Show METRIC over time.'''

    # cli/actions/history.py
    def command(folders: Folders, metric: str) -> int: ...
"""

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any


def action(definition: Callable[[], None]) -> Callable[..., Any]:
    """Return a function that calls the one of the same name in the module of this package that has
    the same name, with its arguments."""
    name = definition.__module__.rpartition(".")[2]

    @wraps(definition)
    def run(*objects: Any, **values: Any) -> Any:
        module = importlib.import_module(f"{__name__}.{name}")
        return getattr(module, definition.__name__)(*objects, **values)

    return run
