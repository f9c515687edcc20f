"""The hosts that qhost shows, as a machine: programs that only answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.hooks import value_of
from seatrial.model.machine import Memory, NodeGroup
from seatrial.plugins.gridengine import GridEngine
from seatrial.plugins.gridengine.client import detect_gridengine
from tests.model.fakes import program

CAPTURED = Path(__file__).parent / "data" / "gridengine-qhost.xml"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the whole PATH, without a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return folder


def answers(folder: Path, text: str) -> None:
    program(folder, "qhost", {"'-q -xml'": text})
    rules = {"'-sp smp'": "pe_name smp\nallocation_rule    $pe_slots", "'-sp two'": "pe_name two"}
    program(folder, "qconf", {"-spl": "smp\ntwo", **rules})


def host(name: str, slots: int, **values: object) -> str:
    shown = "".join(f"<hostvalue name='{key}'>{value}</hostvalue>" for key, value in values.items())
    queue = f"<queuevalue qname='all.q' name='slots'>{slots}</queuevalue>" if slots else ""
    return f"<host name='{name}'>{shown}{queue}</host>"


def test_what_debian_answered(path: Path) -> None:
    answers(path, CAPTURED.read_text())
    found = detect_gridengine(None)[0]
    [kind] = found.nodes
    assert (found.machine, found.scheduler) == ("cluster", "gridengine")
    assert (kind.names, kind.cores, kind.sockets) == ("n[001-004]", 2, 1)
    assert value_of(found, "gridengine", GridEngine).parallel == {"smp": "$pe_slots"}


def test_kinds_of_hosts(path: Path) -> None:
    hosts = [
        host("global", 0),
        host("x1.example.org", 64, m_socket=2, m_core=64, m_thread=128, mem_total="251.5G"),
        host("x2", 3, num_proc=4, m_socket=1, m_core="-", m_thread="-", mem_total="-"),
        host("login", 0, num_proc=8, m_core=8),
        host("vm1", 16, m_socket=16, m_core=16, m_thread=16),
    ]
    answers(path, f"<qhost>{''.join(hosts)}</qhost>")
    machine, hint = detect_gridengine("polar")
    assert "\n# Grid Engine does not know the sockets of vm1\n" in hint
    assert machine.nodes == [
        NodeGroup(names="x1", cores=64, sockets=2, threads_per_core=2, memory=Memory("257536MiB")),
        NodeGroup(names="x2", cores=3, memory=Memory("0MiB")),
        NodeGroup(names="vm1", cores=16, sockets=1, memory=Memory("0MiB")),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>", "which Grid Engine does not"),
        ("<qhost/>", "no host with cores is in a queue"),
        ("<qhost><host/></qhost>", "a host without a name"),
    ],
)
def test_nonsense(text: str, why: str, path: Path) -> None:
    answers(path, text)
    with pytest.raises(UsageError, match=why):
        detect_gridengine(None)[0]


def test_no_grid_engine_here(path: Path) -> None:
    with pytest.raises(UsageError, match="qhost is not on PATH, so there is no Grid Engine here"):
        detect_gridengine(None)[0]
