"""numpy, PyYAML, ClusterShell and Jinja2, imported at their first use; types of arrays.

>>> from seatrial.lazy import np  # costs nothing
>>> np.zeros(3)                   # imports numpy

Each takes longer to import than most commands take, and few commands need it.

The standard library's LazyLoader enters a module in `sys.modules` before it is loaded, and until
Python 3.12.3 a second thread could see it half-loaded (python/cpython#114763). Here a thread that
uses a module while another one loads it waits for the import lock.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

__all__ = [
    "AnyFloats",
    "AnyInts",
    "Bools",
    "Floats",
    "Indices",
    "Ints",
    "SmallInts",
    "jinja2",
    "nodeset",
    "np",
    "yaml",
]


class _LazyModule(ModuleType):
    """Stand for the module of a name, and hold its attributes from the first use on."""

    def __getattr__(self, name: str) -> object:
        module = importlib.import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


if TYPE_CHECKING:
    import jinja2
    import numpy as np
    import yaml
    from ClusterShell import NodeSet as nodeset
    from numpy.typing import NDArray
else:
    jinja2 = _LazyModule("jinja2")
    nodeset = _LazyModule("ClusterShell.NodeSet")
    np = _LazyModule("numpy")
    yaml = _LazyModule("yaml")

Floats: TypeAlias = "NDArray[np.float64]"
AnyFloats: TypeAlias = "NDArray[np.floating]"  # of any width
Ints: TypeAlias = "NDArray[np.int64]"
AnyInts: TypeAlias = "NDArray[np.signedinteger]"  # of any width
SmallInts: TypeAlias = "NDArray[np.int32]"
Indices: TypeAlias = "NDArray[np.intp]"
Bools: TypeAlias = "NDArray[np.bool_]"
