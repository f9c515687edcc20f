"""The name of a case and the values of its parameters, as people read them; patterns of names."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from seatrial.model.file_model import Scalar


def case_name(
    test: str,
    parameters: "Mapping[str, Scalar]",
    toolchain: str = "",
    node: str = "",
    stage: str = "",
) -> str:
    """Return the display name of a case: ``stream{touch=all,threads=2}@gcc%n017 [full]``."""
    bound = f"{{{bindings_text(parameters)}}}" if parameters else ""
    chain = f"@{toolchain}" if toolchain else ""
    name = f"{test}{bound}{chain}{node_suffix(node)}"
    return f"{name} [{stage}]" if stage else name


class CaseOutline(Struct, frozen=True, kw_only=True):
    """A case without what only those need who run it: see ``model.test.Case``."""

    id: str
    test: str
    parameters: dict[str, Scalar]
    toolchain: str
    nodes: int
    tasks: int
    tasks_per_node: int
    threads: int
    #: In seconds.
    walltime: float
    #: The only one that it may run on; "": any.
    node: str = ""
    exclusive: bool = False
    repeat: int = 1
    #: The key of its build; "" if it has none.
    build: str = ""

    @property
    def name(self) -> str:
        """The display name: ``stream{touch=all,threads=2}@gcc``."""
        return case_name(self.test, self.parameters, self.toolchain, self.node)


def node_suffix(node: str) -> str:
    """Return the end of a case's name that tells its node: ``%n017``, or ""."""
    return f"%{node}" if node else ""


def bindings_text(parameters: "Mapping[str, Scalar]") -> str:
    """Return parameters as people read them: ``touch=all,threads=2``."""
    return ",".join([f"{name}={show(value)}" for name, value in parameters.items()])


def show(value: "Scalar") -> str:
    """Return a parameter's value as scripts and people see it; true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- run ids -------------------------------------------------------------------------------------
#
# The ids of runs. They are known before a run is created, so that its intent can be recorded.


def run_id_of(tag: str, case_id: str, attempt: int) -> str:
    """Return the id of a run: 12 letters and digits of a hash."""
    text = f"{tag}\n{case_id}\n{attempt}"
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest[:10])[:12].decode().lower()


# ---- name patterns -------------------------------------------------------------------------------
#
# Patterns of names, such as ``io_*``.


def is_pattern(text: str) -> bool:
    """Return True if a text holds a wildcard of the shell: ``*``, ``?`` or ``[``."""
    return any(sign in text for sign in "*?[")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of these patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_like(name: str, pattern: str) -> bool:
    """Return True if a name matches a pattern such as ``io_*``, or contains a text without a
    wildcard."""
    return fnmatchcase(name, pattern) if is_pattern(pattern) else pattern in name


def is_case(case: str, name: str, case_id: str) -> bool:
    """Return whether a person means the case of a name and an id by ``case``: a part of the name, a
    pattern of it, or a beginning of the id."""
    return is_like(name, case) or case_id.startswith(case)
