"""Heavy modules are imported at their first use, whole for every thread."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seatrial.lazy import _LazyModule, np, yaml

SLOW_MODULE = """
import time
first = 1
time.sleep(0.2)
last = 2
"""


def test_nothing_is_imported_before_the_first_use() -> None:
    text = (
        "import sys; from seatrial.lazy import np, yaml; before = set(sys.modules);"
        "np.zeros(1); print({'numpy', 'yaml'} & before, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "True"]


def test_a_used_module_gives_what_the_module_has() -> None:
    import numpy

    assert np.ndarray is numpy.ndarray
    assert np.linalg.norm is numpy.linalg.norm
    assert yaml.safe_load("a: 1") == {"a": 1}


def test_what_a_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_function"):
        np.no_such_function  # type: ignore[attr-defined]  # noqa: B018


def test_threads_wait_until_the_module_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_load.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = _LazyModule("slow_to_load")
    start = threading.Barrier(8)
    found: list[object] = []

    def use() -> None:
        start.wait()
        found.append(getattr(module, "last", None))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8
    assert sys.modules.pop("slow_to_load").first == 1
