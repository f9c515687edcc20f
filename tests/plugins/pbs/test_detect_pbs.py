"""The nodes that pbsnodes shows, as a machine: a program that only answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.model.machine import Memory, NodeGroup
from seatrial.plugins.pbs.client import detect_pbs
from tests.model.fakes import program

CAPTURED = Path(__file__).parent / "data" / "pbs-pbsnodes.json"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the whole PATH, without a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return folder


def answers(folder: Path, text: str) -> None:
    program(folder, "pbsnodes", {"'-a -F json'": text})


def vnode(queue: str = "", **resources: Any) -> dict[str, Any]:
    return {"resources_available": resources, **({"queue": queue} if queue else {})}


def test_what_openpbs_answered(path: Path) -> None:
    """The node of the server itself has no CPU."""
    answers(path, CAPTURED.read_text())
    found = detect_pbs(None)[0]
    assert (found.machine, found.scheduler) == ("pbs", "pbs")
    assert found.nodes == [NodeGroup(names="n[001-008]", cores=4, memory=Memory("2048MiB"))]


def test_kinds_of_nodes_vnodes_and_queues(path: Path) -> None:
    nodes = {
        "x1[0]": vnode(ncpus=32, mem="131072kb", ngpus=2, bigmem="True"),
        "x1[1]": vnode(ncpus="32", mem="131072KB", ngpus=2, spare="False"),
        "x2": vnode(ncpus=4, mem="a lot"),
        "login": vnode(ncpus=0),
        "bare": {},
        "x9": vnode("debug", ncpus=8),
    }
    answers(path, json.dumps({"pbs_version": "2021.1", "pbs_server": "s", "nodes": nodes}))
    found = detect_pbs("polar")[0]
    assert found.nodes == [
        NodeGroup(names="x1", cores=64, memory=Memory("256MiB"), gpus=4, features=["bigmem"]),
        NodeGroup(names="x2", cores=4, memory=Memory("0MiB")),
    ]
    assert found.machine == "polar" and found.about.endswith("belong to queues: debug")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>", "answered '<html>"),
        ('{"nodes": [3]}', "no JSON of it"),
        ("[]", "no JSON of it"),
        ('{"pbs_version": "1"}', "no node with CPUs"),
        ('{"nodes": {"n1": {"resources_available": 3}}}', "no node with CPUs"),
    ],
)
def test_nonsense(text: str, why: str, path: Path) -> None:
    answers(path, text)
    with pytest.raises(UsageError, match=why):
        detect_pbs(None)[0]


def test_no_pbs_here(path: Path) -> None:
    with pytest.raises(UsageError, match="pbsnodes is not on PATH, so there is no PBS here"):
        detect_pbs(None)[0]
