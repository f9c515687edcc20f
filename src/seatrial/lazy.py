"""Modules and patterns that few commands need: made ready at their first use.

>>> from seatrial.lazy import np, regex  # costs nothing
>>> np.zeros(3)                            # imports numpy
>>> NAME = regex("[a-z]+")               # costs nothing
>>> NAME.fullmatch("stream")               # compiles it, which takes half a millisecond

The standard library's LazyLoader enters a module in `sys.modules` before it is loaded, and until
Python 3.12.3 a second thread could see it half-loaded (python/cpython#114763). Here a thread that
uses a module while another one loads it waits for the import lock.
"""

import importlib
import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, AnyStr, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ElementTree",
    "LazyModule",
    "asyncio",
    "csv",
    "futures",
    "gzip",
    "hashlib",
    "jinja2",
    "json",
    "multiprocessing",
    "nodeset",
    "np",
    "random",
    "regex",
    "shlex",
    "statistics",
    "yaml",
]


class LazyModule(ModuleType):
    """Stand for the module of a name, and hold its attributes from the first use on."""

    def __getattr__(self, name: str) -> object:
        module = importlib.import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled when it is first used. Raises re.error then."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(partial(re.compile, text, flags)))


class _LazyPattern:
    """Holds those methods of a compiled pattern that were used."""

    def __init__(self, compiled: Callable[[], object]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._compiled(), name)  # re keeps what it has compiled
        self.__dict__[name] = found
        return found


if TYPE_CHECKING:
    import asyncio
    import csv
    import gzip
    import hashlib
    import json
    import multiprocessing
    import random
    import shlex
    import statistics
    from concurrent import futures
    from xml.etree import ElementTree

    import jinja2
    import numpy as np
    import yaml
    from ClusterShell import NodeSet as nodeset
else:
    asyncio = LazyModule("asyncio")
    ElementTree = LazyModule("xml.etree.ElementTree")
    csv = LazyModule("csv")
    futures = LazyModule("concurrent.futures")
    gzip = LazyModule("gzip")
    hashlib = LazyModule("hashlib")
    jinja2 = LazyModule("jinja2")
    json = LazyModule("json")
    multiprocessing = LazyModule("multiprocessing")
    nodeset = LazyModule("ClusterShell.NodeSet")
    np = LazyModule("numpy")
    random = LazyModule("random")
    shlex = LazyModule("shlex")
    statistics = LazyModule("statistics")
    yaml = LazyModule("yaml")


# ---- arrays --------------------------------------------------------------------------------------
#
# Types of arrays, for annotations.


Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Indices: TypeAlias = "NDArray[np.intp]"
Bools: TypeAlias = "NDArray[np.bool_]"
