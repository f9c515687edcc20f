"""What programs say of their versions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.execute.toolchains import version_of, version_script

SAID = [
    ("gcc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free", "gcc (Debian 12.2.0-14) 12.2.0"),
    ("\nnvc 25.3-0 64-bit target \nNVIDIA Compilers and Tools", "nvc 25.3-0 64-bit target"),
    ("clang version 14.0.6\nInstalledDir: /usr/lib/llvm-14.0/bin", "clang version 14.0.6"),
    (
        "nvcc: NVIDIA (R) Cuda compiler driver\nBuilt on Wed_Sep_21_10:33:58_PDT_2022\n"
        "Cuda compilation tools, release 11.8, V11.8.89",
        "Cuda compilation tools, release 11.8, V11.8.89",
    ),
    (
        "HIP version: 5.2.21153\nAMD clang version 14.0.0 (https://g.com/x 22204)\nTarget: x",
        "HIP version: 5.2.21153; AMD clang version 14.0.0 (https://g.com/x 22204)",
    ),
    ("gcc (crosstool-NG UNKNOWN) 8.3.0", "gcc (crosstool-NG UNKNOWN) 8.3.0"),
    ("NAG Fortran Compiler Release 7(Yurakucho)", "NAG Fortran Compiler Release 7(Yurakucho)"),
    (
        "Cray Fortran : Version 15.0.1 (20221026205555_324a)",
        "Cray Fortran : Version 15.0.1 (20221026205555_324a)",
    ),
    ("Cray C : Version 8.7.10  Tue Nov 28, 2026  18:53:26", "Cray C : Version 8.7.10"),
    (
        "2026-11-28T18:53:26+01:00 ifort (IFORT) 2021.10.0 20230609",
        "ifort (IFORT) 2021.10.0 20230609",
    ),
    ("\x1b[1mgcc 12.2\x1b[0m\r\n", "[1mgcc 12.2 [0m"),
    ("[1764356000.123456] site wrapper: using gcc", ""),
    ("x: warning: option 1.2 is new", ""),
    ("/opt/xl-1.2/bin/xlc: using its config", ""),
    ("no version", ""),
]


@pytest.mark.parametrize(("text", "version"), SAID)
def test_the_lines_with_a_version(text: str, version: str) -> None:
    script = f'{version_script()}\nseatrial_version_lines "$1"; printf %s "$_line"'
    done = subprocess.run(
        ["bash", "-eu", "-c", f"set +e\n{script}", "bash", text], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (version, "")


def test_how_a_program_is_asked(tmp_path: Path) -> None:
    program = tmp_path / "cc"

    def says(script: str) -> str:
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        return version_of(f"{program} -m64")

    assert says('[ "$2" = --version ] && echo cc 1.1') == "cc 1.1"
    assert says('echo "using 9.9" >&2; [ "$2" = --version ] && echo cc 1.1') == "cc 1.1"
    assert says('[ "$2" = -V ] && echo cc 1.2 >&2') == "cc 1.2"
    assert says('[ "$2" = -qversion ] && echo V1.3') == "V1.3"
    assert says('[ "$2" = -v ] && echo cc 1.4 >&2') == "cc 1.4"
    assert says("echo cc 1.5; exit 1") == ""
    assert (
        says("printf 'HYDRA build details:\\n    Version:   4.0.2\\n    Date: x\\n'")
        == "HYDRA 4.0.2"
    )
    assert version_of(str(tmp_path / "none")) == ""
