"""Files that administrators have become facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.plugins.facts import readers

EXPORT_2_15 = """\
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: o2ib1
      local NI(s):
        - nid: 10.10.1.101@o2ib1
          status: up
          interfaces:
              0: ib0
          tunables:
              peer_timeout: 180
              peer_credits: 32
          lnd tunables:
              conns_per_peer: 4
              timeout: 50
    - net type: gni
      local NI(s):
        - nid: 1001@gni
          status: down
route:
    - net: o2ib2
      gateway: 10.10.1.7@o2ib1
      hop: -1
      state: up
routing:
    - cpt[0]:
          tiny:
              npages: 0
    - enable: 1
global:
    numa_range: 0
    retry_count: 2
    transaction_timeout: 150
"""


def test_lnetctl_export_is_read() -> None:
    found = readers.facts_in(EXPORT_2_15)
    assert found == {
        "nid.10.10.1.101@o2ib1": "up",
        "nid.1001@gni": "down",
        "ko2iblnd.peer_timeout": "180",
        "ko2iblnd.peer_credits": "32",
        "ko2iblnd.conns_per_peer": "4",
        "ko2iblnd.timeout": "50",
        "lnet.nets": "gni o2ib1",
        "route.o2ib2.10.10.1.7@o2ib1": "up 1",
        "lnet.forwarding": "enabled",
        "lnet.numa_range": "0",
        "lnet.lnet_retry_count": "2",
        "lnet.lnet_transaction_timeout": "150",
    }


@pytest.mark.parametrize(
    "spoilt",
    [
        EXPORT_2_15.replace("    retry_count: 2\n", "    retry_count: 2\n    retry_count: 3\n"),
        EXPORT_2_15[: EXPORT_2_15.index("10.10.1.101")] + "'\n",
        "net:\n",
        "# net:\n",
        "",
    ],
)
def test_of_an_export_that_is_not_whole_nothing_is_believed(spoilt: str) -> None:
    assert readers.facts_in(spoilt) == {}


def test_modprobe_is_read_as_modprobe_does_it() -> None:
    found = readers.facts_in(
        "# LNet\noptions ko2iblnd timeout=50 peer_credits=63\n"
        'options lnet networks="gni0(ipogif0),o2ib1(ib0,ib1)" \\\n'
        '  routes="o2ib1 1 [1-3]@gni; o2ib2 9@gni"\n'
        "options ko2iblnd peer_credits=16\nalias x y\n"
    )
    assert found["ko2iblnd.timeout"] == "50" and found["ko2iblnd.peer_credits"] == "16"
    assert found["lnet.nets"] == "gni0 o2ib1"
    routes = sorted(key for key in found if key.startswith("route."))
    assert routes == [*(f"route.o2ib1.{i}@gni" for i in (1, 2, 3)), "route.o2ib2.9@gni"]


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        (
            "[tcp,o2ib] 2 [8-14/2]@elan",
            [(net, f"{i}@elan", 2, 0) for net in ("tcp", "o2ib") for i in (8, 10, 12, 14)],
        ),
        (
            "o2ib1 10.20.0.[29-35/2]@o2ib2; o2ib3 1 10.20.0.[40,44]@o2ib2:1",
            [
                *(("o2ib1", f"10.20.0.{i}@o2ib2", 1, 0) for i in (29, 31, 33, 35)),
                *(("o2ib3", f"10.20.0.{i}@o2ib2", 1, 1) for i in (40, 44)),
            ],
        ),
        (
            "tcp[1-2] 1@gni 2@gni:7 # o2ib 3@gni\no2ib 3 fe80::1@tcp:4",
            [
                *((f"tcp{i}", *gateway) for i in (1, 2) for gateway in
                  (("1@gni", 1, 0), ("2@gni", 1, 7))),
                ("o2ib", "fe80::1@tcp", 3, 4),
            ],
        ),
        ("o2ib 2; tcp; ; o2ib nid", []),
    ],
)  # fmt: skip
def test_routes_have_lists_of_nets_and_gateways(
    text: str, routes: list[tuple[str, str, int, int]]
) -> None:
    assert list(readers.routes_in(text)) == routes


def test_networks_have_interfaces_and_cpu_partitions() -> None:
    text = "tcp0(eth0),o2ib1(ib0[0],ib1)[0,3], elan0,"
    assert readers.interfaces_in(text) == {"tcp0": "eth0", "o2ib1": "ib0,ib1", "elan0": ""}


def test_settings_of_lctl_and_sysctl_are_read() -> None:
    found = readers.facts_in(
        "at_min=65\ntimeout=100\nosc.scratch-OST0001.checksums=1\nvm.swappiness = 10\n"
    )
    assert found == {
        "ptlrpc.at_min": "65",
        "lustre.timeout": "100",
        "param.osc.scratch-OST0001.checksums": "1",
        "sysctl.vm_swappiness": "10",
    }


def test_our_own_facts_are_read() -> None:
    assert readers.facts_in("node.kernel\t5.1\nend\t1\n") == {"node.kernel": "5.1"}


@settings(max_examples=60)
@given(st.text(alphabet="options lnet=[]-,;@\n\"'()19:route#\\", max_size=120))
def test_no_text_is_too_odd(text: str) -> None:
    readers.facts_in(text)
    list(readers.routes_in(text))


def test_ranges_are_bounded() -> None:
    assert len(list(readers.routes_in("o2ib1 1 [1-999999999]@gni"))) <= readers.MAX_ROUTES
    assert len(list(readers.routes_in("[a,b]1 1 [1-999999999]@gni 1@gni"))) <= readers.MAX_ROUTES
    assert len(list(readers.routes_in("o2ib1 [1-900].[1-900].[1-900]@gni"))) <= readers.MAX_ROUTES


def test_an_unknown_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hello\n")
    with pytest.raises(UsageError, match=r"is none of modprobe\.d"):
        readers.read(tmp_path / "f")


@pytest.mark.parametrize(
    ("address", "nets"),
    [
        ("10.10.1.5", ["o2ib1"]),
        ("10.10.2.5", []),
        ("192.168.0.4", ["tcp0"]),
        ("192.168.0.5", []),
        ("132.6.2.8", ["elan0"]),
        ("132.6.2.7", []),
        ("132.6.4.8", []),
        ("10.10.1", []),
        ("", []),
    ],
)
def test_networks_by_address(address: str, nets: list[str]) -> None:
    text = """o2ib1(ib0, ib1) 10.10.1.*; # servers
        tcp0(eth0) 192.168.0.[2,4]
        elan0 132.6.[1-3].[2-8/2]; elan0 132.6.3.8; odd"""
    assert readers.nets_by_address(text, [address]) == nets
