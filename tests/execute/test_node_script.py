"""The script of facts on trees of files, as they lie below / on nodes with faults."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from seatrial.execute.toolchains import COLLECTION

SCRIPT = COLLECTION / "node.sh"
V2 = "fpu cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


def process(number: int, state: str, size: int = 4096, name: str = "cat") -> dict[str, str]:
    rest = " ".join(["0"] * 19)
    text = f"{number} ({name}) {state} {rest} {size} 0\n"
    return {f"proc/{number}/stat": text}


def card(width: int, speed: str = "16.0 GT/s PCIe") -> dict[str, str]:
    about = {
        "class": "0x020700",
        "vendor": "0x15b3",
        "device": "0x101b",
        "current_link_width": str(width),
        "max_link_width": "16",
        "current_link_speed": speed,
        "max_link_speed": "16.0 GT/s PCIe",
    }
    folder = "sys/bus/pci/devices/0000:3b:00.0"
    return {f"{folder}/{name}": f"{value}\n" for name, value in about.items()}


def told(root: Path | str, files: dict[str, str], **more: str) -> dict[str, str]:
    """Return the facts of a tree with these files; "": of this host."""
    for name, text in files.items():
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {**os.environ, "SEATRIAL_ROOT": str(root), **more}
    line = ["bash", str(SCRIPT)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr
    *lines, end = done.stdout.splitlines()
    assert end == f"end\t{len(lines)}"
    return dict(line.split("\t", 1) for line in lines)


@pytest.mark.parametrize(
    ("flags", "level"),
    [("fpu", "1"), (V2, "2"), (V3, "3"), (V4, "4"), (V4.replace("fma ", ""), "2")],
)
def test_the_level_of_the_processor(tmp_path: Path, flags: str, level: str) -> None:
    text = f"processor\t: 0\nmicrocode\t: 0x2b\nflags\t\t: {flags}\nbugs\t: x\n\n"
    found = told(tmp_path, {"proc/cpuinfo": text * 2})
    assert (found["cpu.isa_level"], found["cpu.microcode"]) == (level, "0x2b")


def test_a_card_of_half_its_lanes(tmp_path: Path) -> None:
    found = told(tmp_path, card(8))
    assert found["pci.0000:3b:00.0"] == "0207 15b3:101b x8 of x16"
    assert (found["pci.narrow"], found["pci.slow_network"]) == ("0000:3b:00.0", "none")
    found = told(tmp_path, card(16, "8.0 GT/s PCIe"))
    assert (found["pci.narrow"], found["pci.slow_network"]) == ("none", "0000:3b:00.0")


def test_counters_of_errors(tmp_path: Path) -> None:
    edac, ib = "sys/devices/system/edac/mc", "sys/class/infiniband/mlx5_0"
    found = told(
        tmp_path,
        {
            f"{edac}/mc0/ce_count": "7\n",
            f"{edac}/mc1/ce_count": "5\n",
            f"{edac}/mc1/ue_count": "1\n",
            f"{ib}/ports/1/counters/symbol_error": "812\n",
            f"{ib}/ports/1/state": "4: ACTIVE\n",
            "proc/interrupts": "  CPU0 CPU1\nMCE:  0  2  Machine check exceptions\nMCP: 9 9 x\n",
        },
    )
    assert (found["now.edac_corrected"], found["now.edac_uncorrected"]) == ("12", "1")
    assert found["now.ib_mlx5_0_1_symbol_error"] == "812"
    assert found["ib.mlx5_0.1.state"] == "ACTIVE"
    assert found["now.machine_checks"] == "2"


def test_routes_of_lnet(tmp_path: Path) -> None:
    table = (
        "Routing disabled\n"
        "net      hops priority   state router\n"
        "tcp         1        0      up 10.0.0.1@o2ib2\n"
        "o2ib1      -1        0    down 10@gni\n"
        "o2ib3       2        1      up 11@gni\n"
    )
    found = told(tmp_path, {"sys/kernel/debug/lnet/routes": table})
    assert {key: value for key, value in found.items() if key.startswith("route.")} == {
        "route.tcp.10.0.0.1@o2ib2": "up 1",
        "route.o2ib1.10@gni": "down 1",
        "route.o2ib3.11@gni": "up 2 priority 1",
    }


def test_huge_pages_that_can_be_had(tmp_path: Path) -> None:
    blocks = "Node 0, zone   Normal  1  2  0  1  1  1  1  0  1  3  5\n"
    meminfo = "MemTotal:       100000 kB\n"
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo})
    assert (found["now.huge_possible"], found["now.huge_percent"]) == ("13", "26")


def test_huge_pages_of_a_node_with_pages_of_64_kib(tmp_path: Path) -> None:
    blocks = "Node 0, zone   Normal  20  18  11  9  5  4  3  2  2  1  1  1  1  900\n"
    meminfo = (
        "MemTotal:       501219328 kB\nMemFree:        480000000 kB\n"
        "MemAvailable:   478000000 kB\nHugepagesize:     524288 kB\n"
    )
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo})
    assert (found["now.huge_possible"], found["now.huge_percent"]) == ("900", "94")
    assert found["now.huge_obtainable_percent"] == "95"


def test_huge_pages_that_were_set_aside_are_a_jobs(tmp_path: Path) -> None:
    """With pages of 16 KiB a huge page has 32 MiB, so order 11; the pool has pages of two sizes."""
    blocks = "Node 0, zone   Normal  0  0  0  0  0  0  0  0  0  0  0  40\n"
    meminfo = (
        "MemTotal:       100000000 kB\nMemFree:        1310720 kB\n"
        "MemAvailable:   1300000 kB\nHugepagesize:     32768 kB\n"
    )
    pools = {"32768kB": 1000, "1048576kB": 50}
    folder = "sys/kernel/mm/hugepages/hugepages-"
    free = {f"{folder}{size}/free_hugepages": f"{n}\n" for size, n in pools.items()}
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo, **free})
    assert (found["now.huge_possible"], found["now.huge_percent"]) == ("40", "86")
    assert found["now.huge_obtainable_percent"] == "86"


GPU = "NVIDIA H200, 550.54.15, 96.00.99.00.01, 143771 MiB, Enabled"


@pytest.mark.parametrize(
    ("script", "gpus"),
    [
        (f"echo '{GPU}'; echo '{GPU}'", {"gpu.0": GPU, "gpu.1": GPU, "gpu.count": "2"}),
        ("echo No devices were found; exit 6", {"gpu.count": "0"}),
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; echo v 5; exit 18",
            {
                "skipped.gpu": "nvidia-smi ended with status 18: Failed to initialize NVML: "
                "Driver/library version mismatch; v 5"
            },
        ),
        (
            f"echo '{GPU}'; echo 'Unable to determine the device handle for GPU1'",
            {
                "gpu.0": GPU,
                "skipped.gpu": "nvidia-smi: Unable to determine the device handle for GPU1",
            },
        ),
        ("exit 9", {"skipped.gpu": "nvidia-smi ended with status 9"}),
    ],
)
def test_an_error_of_a_program_is_no_fact(
    tmp_path: Path, script: str, gpus: dict[str, str]
) -> None:
    program(tmp_path / "nvidia-smi", script)
    program(tmp_path / "dpkg-query", "echo 'package slurmd is not installed'; exit 1")
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = told("", {}, PATH=path, SEATRIAL_PACKAGES="slurmd")
    assert {key: found[key] for key in found if key.startswith(("gpu.", "skipped.gpu"))} == gpus
    assert "package.slurmd" not in found


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_full_page_cache_takes_no_huge_pages_away(tmp_path: Path) -> None:
    blocks = "Node 0, zone   Normal  90000 45000 22500 11250 5625 2812 1406 703 351 400 300\n"
    meminfo = (
        "MemTotal:       24684092 kB\nMemFree:        5200000 kB\n"
        "MemAvailable:   23245364 kB\nHugepagesize:     2048 kB\n"
    )
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo})
    assert (found["now.huge_percent"], found["now.huge_obtainable_percent"]) == ("8", "94")
    size = {"sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "2097152\n"}
    meminfo = meminfo.replace("Hugepagesize:     2048 kB", "Hugepagesize:  1048576 kB")
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo, **size})
    assert found["now.huge_percent"] == "8"  # transparent pages have a size of their own
    meminfo = meminfo.replace("MemAvailable:   23245364", "MemAvailable:   1245364")
    found = told(tmp_path, {"proc/buddyinfo": blocks, "proc/meminfo": meminfo, **size})
    assert found["now.huge_obtainable_percent"] == "5"


def test_stuck_processes_are_named(tmp_path: Path) -> None:
    files = {**process(17, "D", name="a) D b"), **process(18, "S"), **process(2, "D", size=0)}
    load = {"proc/loadavg": "1.20 1.0 1.0 1/100 7\n"}
    found = told(tmp_path, files | load)
    assert (found["now.stuck_processes"], found["now.stuck"]) == ("1", "17:a) D b")
    found = told(tmp_path, {"proc/loadavg": "0.20 1.0 1.0 1/100 7\n"})
    assert found["now.stuck_processes"] == "0"


def test_file_systems_in_which_programs_are_not_told_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "lus").mkdir()
    mounts = "s:/a /lus lustre rw 0 0\ns:/b /gone\\040away nfs rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n"
    found = told(tmp_path, {"proc/self/mounts": mounts})
    assert found["now.getcwd_failed"] == "/gone away"
    assert found["mount./lus"] == "lustre s:/a rw"
    found = told(tmp_path, {"proc/self/mounts": "s:/a /lus lustre rw 0 0\n"})
    assert found["now.getcwd_failed"] == "none"


def test_networks_have_their_netmasks(tmp_path: Path) -> None:
    text = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n"
        "ib0 00000A0A 00000000 0001 0 0 0 0000FFFF 0 0 0\n"
        "eth0 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    )
    found = told(tmp_path, {"proc/net/route": text})
    assert found["network.ib0"] == "10.10.0.0/255.255.0.0"
    assert found["network.eth0"] == "192.168.1.0/255.255.255.0"
