"""The name of a case, and the values of its parameters, as people read them."""

import base64
import hashlib
from collections.abc import Mapping

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
