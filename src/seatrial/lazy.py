"""Modules that take long to import and that few commands need: loaded at their first use.

>>> from seatrial.lazy import np  # costs nothing
>>> np.zeros(3)                   # imports numpy

The standard library's LazyLoader enters a module in `sys.modules` before it is loaded, and until
Python 3.12.3 a second thread could see it half-loaded (python/cpython#114763). Here a thread that
uses a module while another one loads it waits for the import lock.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = [
    "ElementTree",
    "LazyModule",
    "futures",
    "jinja2",
    "multiprocessing",
    "nodeset",
    "np",
    "yaml",
]


class LazyModule(ModuleType):
    """Stand for the module of a name, and hold its attributes from the first use on."""

    def __getattr__(self, name: str) -> object:
        module = importlib.import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


if TYPE_CHECKING:
    import multiprocessing
    from concurrent import futures
    from xml.etree import ElementTree

    import jinja2
    import numpy as np
    import yaml
    from ClusterShell import NodeSet as nodeset
else:
    ElementTree = LazyModule("xml.etree.ElementTree")
    futures = LazyModule("concurrent.futures")
    jinja2 = LazyModule("jinja2")
    multiprocessing = LazyModule("multiprocessing")
    nodeset = LazyModule("ClusterShell.NodeSet")
    np = LazyModule("numpy")
    yaml = LazyModule("yaml")
