"""The GPUs of this host, by device files as drivers have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.execute import detect as host_gpus
from seatrial.execute.detect import count_gpus, detect


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Device files of two GPUs of NVIDIA, with those of their driver."""
    monkeypatch.setattr(host_gpus, "DEVICES", tmp_path / "dev")
    monkeypatch.setattr(host_gpus, "AMD_NODES", tmp_path / "kfd")
    (tmp_path / "dev/nvidia-caps").mkdir(parents=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"):
        (tmp_path / "dev" / name).touch()
    return tmp_path / "dev"


def test_device_files_of_gpus_are_counted_not_those_of_their_driver(devices: Path) -> None:
    assert count_gpus({}) == 2
    (devices / "nvidia0").unlink()
    assert count_gpus({}) == 1


def test_what_the_environment_shows_is_the_most(devices: Path) -> None:
    assert count_gpus({"CUDA_VISIBLE_DEVICES": "1"}) == 1
    assert count_gpus({"CUDA_VISIBLE_DEVICES": ""}) == 2  # as in jobs that asked for none
    assert count_gpus({"ROCR_VISIBLE_DEVICES": "0,1,2,3"}) == 2


def test_cpus_among_amds_nodes_are_no_gpus(devices: Path, tmp_path: Path) -> None:
    for node, gpu_id in enumerate(("0", "51140", "", "2071")):
        (tmp_path / f"kfd/{node}").mkdir(parents=True)
        (tmp_path / f"kfd/{node}/gpu_id").write_text(f"{gpu_id}\n")
    (tmp_path / "kfd/4/gpu_id").mkdir(parents=True)  # one that cannot be read
    assert count_gpus({}) == 4


def test_a_detected_machine_has_the_gpus_of_the_host(devices: Path) -> None:
    assert detect("h").nodes[0].gpus == 2
