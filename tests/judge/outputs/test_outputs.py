"""Every format on every output in ``data``: golden figures, cut and damaged outputs, foreign ones.

``data/ior-2.10.out`` is an output of the format ``ior``; ``.json`` beside it has its figures.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.hooks import provided
from seatrial.judge.formats import MAX_FIGURES, find_format, formats
from seatrial.judge.metrics import measure
from seatrial.judge.reading import read_text
from seatrial.model.codes import NO_FIGURE, PASS
from seatrial.model.figures import MetricValue
from tests.judge.helpers import DATA, a_test, only_golden

FILES = sorted(DATA.glob("*.out"))
# They have no closing line: a cut between two lines, or two benchmarks, leaves what is before it.
OPEN_ENDED = {"osu", "npb", "oth", "xthi", "ior-csv"}
# HPCC's output holds a whole output of HPL.
WITHIN = {("hpl", "hpcc")}

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def form_of(file: Path) -> str:
    return file.stem.partition("-")[0]


def read(form: str, text: str) -> list[MetricValue]:
    return find_format(form).read(text)


def refused(form: str, text: str) -> str:
    """The reason why an output is refused; "" where it is not."""
    try:
        read(form, text)
    except ValueError as error:
        assert len(str(error)) > 10
        return str(error)
    return ""


def test_every_format_of_the_core_has_an_output() -> None:
    of_plugins = {known.name for known in provided("seatrial_output_formats")}
    assert {form_of(file) for file in FILES} == set(formats()) - of_plugins


@every_file
def test_figures(file: Path) -> None:
    figures = read(form_of(file), file.read_text())
    encoded = msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n"
    only_golden(encoded, file.with_suffix(".json"))
    told = find_format(form_of(file)).figures
    assert told is None or {figure.full_name for figure in figures} <= set(told)


@every_file
def test_every_beginning_is_refused_or_whole(file: Path) -> None:
    """Cut after every line, and in every line: its newline, its last and last four characters."""
    form, text = form_of(file), file.read_text()
    whole = read(form, text)
    lines = [match.end() for match in re.finditer("\n", text)]
    ends = sorted({max(0, end - less) for end in lines for less in (0, 1, 2, 5)} - {len(text)})
    refusals = 0
    for end in ends:
        try:
            figures = read(form, text[:end])
        except ValueError:
            refusals += 1
            continue
        assert figures == whole[: len(figures)], f"cut at {end}"
        open_ended = {form, file.stem} & OPEN_ENDED
        assert open_ended or len(figures) == len(whole), f"cut at {end}"
    assert refusals > len(ends) / 4


@every_file
def test_without_one_of_its_lines_it_is_refused_or_has_less(file: Path) -> None:
    form, lines = form_of(file), file.read_text().split("\n")
    whole = read(form, "\n".join(lines))
    for number in range(len(lines)):
        text = "\n".join([*lines[:number], *lines[number + 1 :]])
        assert refused(form, text) or all(figure in whole for figure in read(form, text)), number


@every_file
def test_a_comma_for_a_point_is_refused_or_no_figures(file: Path) -> None:
    """As some locales print numbers: all of them, and each one for itself."""
    form, text = form_of(file), file.read_text()
    whole = read(form, text)
    if form != "xthi":  # its numbers are whole
        assert refused(form, re.sub(r"(?<=\d)\.(?=\d)", ",", text))
    points = [match.start() for match in re.finditer(r"(?<=\d)\.(?=\d)", text)]
    for at in points[-50:]:
        damaged = text[:at] + "," + text[at + 1 :]
        assert refused(form, damaged) or read(form, damaged) == whole, text[at - 30 : at + 10]


@every_file
def test_lines_that_end_as_on_windows(file: Path, tmp_path: Path) -> None:
    form, text = form_of(file), file.read_text()
    (tmp_path / "damaged").write_bytes(text.replace("\n", "\r\n").encode())
    assert read(form, read_text(tmp_path, "damaged")) == read(form, text)
    stray = text.replace("\n", "\r\r\n")
    assert refused(form, stray) or read(form, stray) == read(form, text)


@every_file
def test_another_program_s_output_is_refused(file: Path) -> None:
    text = file.read_text()
    for form in formats():
        if form != form_of(file) and (form, form_of(file)) not in WITHIN:
            assert refused(form, text), f"{form} takes {file.name} for its own"


@every_file
def test_two_runs_in_one_output_are_refused(file: Path) -> None:
    text = file.read_text()
    assert refused(form_of(file), text + text)


@every_file
def test_stars_and_what_is_not_finite_are_refused_or_no_figures(file: Path) -> None:
    form, text = form_of(file), file.read_text()
    whole = read(form, text)
    numbers = list(re.finditer(r"(?<=[\s=|:])\d+\.\d+(?:e[+-]\d+)?(?=[\s,|X])", text))[-12:]
    for number in numbers:
        for junk in ("*" * len(number[0]), "nan", "-inf", "1e999", "0x1p3", "1_0"):
            damaged = text[: number.start()] + junk + text[number.end() :]
            assert refused(form, damaged) or read(form, damaged) == whole, number[0]


@every_file
def test_long_lines_take_linear_time(file: Path) -> None:
    form, text = form_of(file), file.read_text()
    lines = text.split("\n")
    chosen = range(0, len(lines), max(1, len(lines) // 6))
    begun = time.process_time()
    for line in chosen:
        for fill in (" ", "= ", "a", "\t1"):
            longer = [*lines[:line], lines[line] + fill * 20_000 + "x", *lines[line + 1 :]]
            refused(form, "\n".join(longer))
    assert time.process_time() - begun < 5


# What launchers put before each line, with the rank as the last number but one or the last.
LABELS = {
    "srun": "0: ",
    "srun of many": "  12: ",
    "srun of two jobs": "P1  0: ",
    "Open MPI": "[1,0]<stdout>:",
    "Open MPI with times": "Sun Nov 29 06:42:32 2026[1,0]<stdout>:",
    "times alone": "Sun Nov  1 06:42:32 2026<stdout>:",
    "PRRTE": "[prterun-host-1@1,0]<stdout>: ",
    "PRRTE with details": "[1,0][n001:4711]<stdout>: ",
    "PRRTE with times": "[Sun Nov 29 06:42:32 2026][1,0]<stdout>: ",
    "PRRTE by ranks": "[0]<stdout>: ",
    "Hydra": "[0] ",
}


def labelled(text: str, label: str) -> str:
    """``label`` before each line; launchers leave no blank at the end of an empty line."""
    return re.sub(r"(?m)^(?!\Z)", label, text)


@every_file
def test_labels_of_launchers_are_taken_off(file: Path) -> None:
    form, text = form_of(file), file.read_text()
    whole = read(form, text)
    for name, label in LABELS.items():
        assert read(form, labelled(text, label)) == whole, name
        cut = labelled(text[: len(text) * 2 // 3], label)
        assert refused(form, cut) == refused(form, text[: len(text) * 2 // 3]), name
        assert refused(form, labelled(text + text, label)), name
    bare = labelled(text, "0: ").replace("0: \n", "0:\n")
    assert read(form, bare) == whole


def test_what_two_ranks_wrote_is_refused_with_their_number() -> None:
    text = (DATA / "stream.out").read_text()
    lines = [f"{rank}: {line}" for line in text.splitlines(keepends=True) for rank in (0, 1)]
    reason = refused("stream", "".join(lines))
    assert reason == (
        "it has 'Copy' twice; judge one run at a time; its lines have the labels of 2 ranks"
    )
    osu = (DATA / "osu-7-barrier.out").read_text()
    assert refused("osu", labelled(osu, "0: ") + labelled(osu, "1: ")) == (
        "it gives 'latency{benchmark=MPI Barrier Latency}' twice; judge one run at a time; "
        "its lines have the labels of 2 ranks"
    )


# Formats that are read as a whole: a line of somebody else is damage.
STRICT = {"oth", "ior-json", "fio"}
MESSAGES = [
    "[1700000000.123456] [n001:4711:0]     ucp_context.c:1234 UCX  WARN  no transport 'x' for 3",
    "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    "-" * 74,
    "n001:4711:4711 [0] NCCL INFO Launch mode Parallel",
    "V-1: Entering timestamp...",
    "A process has forked = none: 5",
    "100% done",
    "10 %\r50 %\r",
]


@every_file
def test_messages_between_its_lines_change_no_figure(file: Path) -> None:
    form, text = form_of(file), file.read_text()
    lines = text.splitlines(keepends=True)
    whole = read(form, text)
    for place in range(len(lines) + 1):
        few = len(lines) < 60
        for message in MESSAGES if few else [MESSAGES[place % len(MESSAGES)]]:
            parts = "".join([*lines[:place], f"{message}\n", *lines[place:]])
            outside = file.stem == "ior-json" and place in (0, len(lines))
            if outside or not {form, file.stem} & STRICT:
                assert read(form, parts) == whole, (place, message)
            else:
                assert refused(form, parts) or read(form, parts) == whole


REFUSALS = [
    ("hello.out", "thread 1 of 2", "thread 1 of", "not whole"),
    ("hello.out", "mask 0-1", "mask 1-0", "is not a set of CPUs"),
    ("hello.out", "hello finished", "hello", "closing line 'hello finished' is missing"),
    ("xthi.out", "rank 1,", "rank one,", "not whole"),
    ("xthi-archer2.out", "Node    1, hostname", "Node    2, hostname", "host name of node 1"),
    ("xthi-archer2.out", "summary: 4", "summary: 5", "it tells of 5 ranks"),
    ("congestion.out", "low 0.2271", "low 5", "its line of latency avg cannot be"),
    ("congestion.out", "bandwidth p99", "bandwidth p98", "line of bandwidth p99 is missing"),
    ("congestion.out", "alone 2.61041", "alone nan", "not a finite number"),
    ("congestion.out", "congestion of 4 ranks", "4 ranks", "title 'congestion of' is missing"),
    ("elbencho.out", ",READ,", ",SYNC,", "no row of READ, which its command asks for"),
    ("elbencho.out", ",WRITE,", ",WRITE,,", "a row of it is not whole"),
    ("elbencho.out", ",operation,", ",what,", "its head 'ISO date"),
    ("elbencho.out", ",569,", ",nan,", "not a finite number"),
    ("fio.out", '"bw_bytes" : 262144000', '"bw_bytes" : 562144000', "is not its bytes by its time"),
    ("fio.out", '"error" : 0', '"error" : 84', "its job 'write' ended with error 84"),
    ("fio.out", '"jobname" : "read"', '"jobname" : "write"', "2 jobs 'write': give --group_rep"),
    ("fio.out", '"fio version"', '"version"', "its JSON is not whole, or not that of fio 3"),
    ("gpcnet.out", "2.1X", "1.1X", "says 1.1X for 'RR Two-sided Lat .8 B.', but its tables give"),
    ("gpcnet.out", "2.1X", "infX", "not a finite number"),
    ("gpcnet.out", "2.1X |\n", "\n", "not whole"),
    ("gpcnet.out", "usec", "msec", "the unit of 'RR Two-sided Lat .8 B.' is not known"),
    ("gpcnet.out", "NetworkLoad", "Network", "title 'NetworkLoad Tests' is missing"),
    (
        "gpcnet.out",
        "| RR Two-sided BW+Sync (131072 B) |       3132.0",
        "|          RR Two-sided Lat (8 B) |       3132.0",
        "twice",
    ),
    ("gpcnet.out", "          5.3 |", "            0 |", "a figure that is not positive"),
    ("gpcnet.out", "Isolated Network Tests", "Isolated", "table of isolated network tests"),
    ("gpcnet.out", "ion Tests    ", "ion         ", "table of congested network tests"),
    ("gpcnet.out", "Key Results", "Results", "table of impact network tests is missing"),
    ("gpcnet.out", "         99% |        Units", "         Avg |        Units", "'Avg' twice"),
    ("graph500.out", "Validating BFS 0", "Validation failed for this root", "says 'Validation"),
    ("graph500.out", "sssp median_time: ", "once ", "'sssp median_time' is missing"),
    ("graph500.out", "sssp stddev_validate:", "", "'sssp stddev_validate' is missing"),
    ("graph500.out", "!  9.279e+07", "!  0", "a figure of bfs is not positive"),
    (
        "graph500.out",
        "sssp median_time:               0.0271",
        "sssp median_time: 0",
        "of sssp is not",
    ),
    ("graph500.out", "!  9.279e+07", "!  9.2 79e+07", "not whole"),
    ("hpcc.out", "Success=1", "Success=0", "Success=0, not 1"),
    ("hpcc.out", "PTRANS_GBs=0.68", "PTRANS_GBs=-1", "that was not run"),
    ("hpcc.out", "HPL_Tflops", "HPL_Pflops", "'HPL_Tflops' is missing"),
    ("hpcc.out", "HPL_time", "HPL_Tflops", "'HPL_Tflops' twice"),
    ("hpcc.out", "Begin of Summary", "Begin", "'Begin of Summary section.' is missing"),
    ("hpcg.out", "is VALID with a GFLOP/s rating of=0.974113", "is INVALID.", "INVALID"),
    ("hpcg.out", "Raw Total B/W", "Raw", "'Raw Total B/W' is missing"),
    ("hpl.out", "PASSED", "FAILED", "'FAILED'"),
    ("hpl.out", "1 tests completed and passed", "0 tests completed and passed", "0 of its 1"),
    ("hpl.out", "...... PASSED", "", "without a residual that passed"),
    ("hpl-sweep.out", "WR11C2R4       19200", "         19200", "1 results, and says that 2"),
    ("hpl.out", "19.36  ", "  ", "not whole"),
    ("imb.out", "1.31         1.52         1.43", "time-out.", "gave a sample up"),
    ("imb.out", "410.04     10229.01", "410.04", "should have 4 columns"),
    ("imb.out", "Msg/sec", "Msg/min", "column that is not known: 'Msg/min'"),
    ("imb.out", "MPI_Finalize", "MPI_", "closing line"),
    ("imb-ext.out", "3.20         0.00", "3.20         1.00", "found defects"),
    ("imb.out", "1000         1.10         1.13         1.12", "", "no figures of 'Barrier'"),
    ("io500.out", "time 304.100 seconds", "time 304.100 seconds [INVALID]", "write is INVALID"),
    ("io500.out", "find     1342.302247", "find 0.000000", "did not run"),
    ("io500.out", "ior-hard-read", "ior-card-read", "'ior-hard-read' is missing"),
    ("io500.out", "TOTAL 13.", "TOTAL 14.", "but its phases give 13.1"),
    ("io500.out", "TOTAL 13.115684", "TOTAL 13.115684 [INVALID]", "score is INVALID"),
    ("io500.out", "4.123456 GiB/s", "4.123456 kIOPS", "is in kIOPS"),
    ("ior.out", "read         6423.13", "remove       6423.13", "row that is not known"),
    ("ior.out", "read         6423.13", "\nread      6423.13", "summary has no row of read"),
    ("ior.out", "547.70     540.32     544.01", "547.70     540.32     644.01", "not between"),
    ("ior.out", "Finished  ", "Abandoned", "closing line 'Finished' is missing"),
    ("ior.out", "Results:", "ERROR: open64 failed", "IOR says 'ERROR: open64"),
    ("ior.out", "Results:", "WARNING: incorrect data on read (3 errors found)", "incorrect data"),
    ("ior-2.10.out", "(49408.90 MB/sec)", "(47120.00 MB/sec)", "do not agree"),
    ("ior-2.10.out", "(49408.90 MB/sec)", "(49459.00 MB/sec)", "do not agree"),
    (
        "ior-2.10.out",
        "Max Write: 47120.00 MiB/sec (49408.90",
        "Max Write: 1.00 MiB/sec (1.50",
        "do not agree",
    ),
    (
        "ior-json.out",
        '"Finished"',
        '"x": "WARNING: incorrect data on read", "Finished"',
        "IOR says",
    ),
    ("ior-2.10.out", "Max Write: 47120.00 MiB/sec", "Max Write: MiB/sec", "not whole"),
    ("ior-json.out", '"bwMaxMIB": 15033.3477', '"bwMaxMIB": "15033"', "its JSON is not whole"),
    ("ior-json.out", '"bwMaxMIB": 15033.3477', '"bwMaxMIB": nan', "its JSON is not whole"),
    ("ior-json.out", '"tests": [', '"tests": ' + "[" * 100_000, "its JSON is not whole"),
    ("lammps.out", "Setting up", "ERROR on proc 0: Lost atoms\nSetting up", "ERROR on proc 0"),
    ("lammps.out", "1.98011 on 2 procs", "1.98011 on", "not whole"),
    ("lammps.out", "1.98011 on", "0 on", "the loop time of run 1 is 0 s"),
    ("lammps.out", "for 100 steps", "for 0 steps", "nothing was run"),
    ("mdtest.out", "8349.366       8333.441", "8349.366", "not whole"),
    ("hpcc.out", "End of HPC Challenge tests.", "", "'End of HPC Challenge tests.' is missing"),
    ("mdtest.out", "File stat ", "Pile stat ", "not known"),
    ("mdtest.out", "8341.403", "9341.403", "mean is not between"),
    ("mdtest.out", "Mean        Std Dev", "Std Dev        Mean", "head of its summary"),
    ("mpigraph.out", "END mpiGraph", "", "line 'END mpiGraph' is missing"),
    ("mpigraph.out", "Procs\t4", "Procs\t1", "is not one of 2 or more"),
    ("mpigraph.out", "Send max\t1357", "Send max\t1457", "but the largest is 1357.55"),
    ("mpigraph.out", "nid00003:2 to\t", "nid00003:2 to ", "no whole row of 'nid00003:2'"),
    ("mpigraph.out", "nid00003:2 to\t", "nid00003:2 to\t1\t", "no whole row of 'nid00003:2'"),
    ("mpigraph.out", "516.705", "inf", "what is not a number"),
    ("mpigraph.out", "516.705", "5.16.7", "what is not a number"),
    ("mpigraph.out", "Procs\t4", "Procs\t5", "has 4 ranks, its line 'Procs' 5"),
    ("mpigraph.out", "\t0.000\t214", "\t1.000\t214", "rank with itself"),
    ("npb-mpi.out", "              SUCCESSFUL\n", "UNSUCCESSFUL\n", "'UNSUCCESSFUL'"),
    ("npb-mpi.out", "Mop/s total  ", "Mop/s totl   ", "'Mop/s total' is missing"),
    ("npb-omp-two.out", " IS Benchmark Completed", "", "2 benchmarks were started, and 1 comp"),
    ("osu-5-bw.out", "23012.88", "23012.88 1", "should have 2 columns"),
    ("osu-5-bw.out", "23012.88", "23012.8", "ends with '23012.8': it is not whole"),
    ("osu-5-bw.out", "23012.88", "230", "ends with '230': it is not whole"),
    ("osu-5-bw.out", "Bi-Directional Bandwidth", "Bandwidth", "twice"),
    ("osu-7-allreduce-checked.out", "Pass", "Fail", "validation says 'Fail'"),
    ("osu-7-barrier.out", "             1.41\n", "", "no figures below the title"),
    ("osu-7-barrier.out", "v7.3", "v7,3", "its title is not"),
    ("osu-3-mbw_mr.out", "v3.6", "v2.2", "its title is not .* 3 to 7"),
    ("imb.out", "# #processes = 2 \n", "", "'# #processes' of 'PingPong' is missing"),
    ("imb.out", "# Benchmarking PingPong", "", "'# Benchmarking' is missing"),
    ("imb-ext.out", "# Benchmarking", "", "'# Benchmarking' is missing"),
    ("imb.out", "# Benchmarking Sendrecv", "", "'# Benchmarking' is missing"),
    ("imb.out", "#processes = 2", "#processes = two", "not whole: '# #processes = two"),
    ("osu-7-barrier.out", "Avg Latency", "Guess", "column that is not known: 'Guess.us.'"),
    ("stream.out", "Rate MB/s", "Rate GB/s", "rates are in 'GB/s'"),
    ("hpcg-intel.out", "is VALID with a GFLOP/s rating of=19.31", "is=INVALID.", "INVALID"),
    ("hpcg-intel.out", "of=19.31", "of", "rating is not whole"),
    ("hpcg-intel.out", "n64", "HPCG result is VALID with a GFLOP/s rating of 19.4\nn64", "two rat"),
    ("graph500-progress.out", "\nconstruction_time:              0.534011\n", "\n", "is missing"),
    ("mdtest-verbose.out", "   File stat ", "   Pile stat ", "that is not known: '   Pile stat"),
    ("mdtest-verbose.out", "   Operation                      Max", "Max", "head of its summary"),
    ("osu-7-bw-tails.out", "      28.00\n", "\n", "should have 5 columns"),
    ("osu-7-bw-tails.out", "P99 Tail BW(MB/s)", "P99 Tail XY(MB/s)", "not known: 'P99 Tail XY"),
    ("ior.out", "\nFinished", "\nappend 1.0 1.0 1.0 0.0\nFinished", "is not known|not whole"),
    ("ior-csv.out", ",0.5389,0", ",0.5389", "should have 11 columns"),
    ("ior-csv.out", ",0.5389,0", ",0.5389,1", "should be repetition 0"),
    ("ior-csv.out", "\nread,", "\nIOR-4: MPI Coordinated Test of Parallel I/O\nread,", "one form"),
    ("ior-csv.out", "1900.1000", "1900.1000*", "is not a number"),
    (
        "gpcnet-network-test.out",
        "        Multiple Allreduce (8 B) |         12.6 ",
        "",
        "not whole",
    ),
    ("gpcnet-network-test.out", "Network Tests v", "Network Test v", "title"),
    ("gpcnet-network-test.out", "     1.9 |", "       0 |", "a figure that is not positive"),
    ("nccl.out", " 140.20      0 ", " 140.20      2 ", "a value was wrong: #wrong is 2 in the row"),
    ("nccl.out", "    179.5 ", "     0.00 ", "a row of its table is not whole"),
    ("nccl.out", " : 0 OK", " : 3 FAILED", "out of bounds values 3 FAILED"),
    ("nccl.out", "141.00      0\n", "141.00\n", "not whole|columns|was wrong"),
    ("nccl.out", " sum      -1    179.5", " sum    179.5", "should have 13 columns"),
    (
        "nccl.out",
        "bandwidth    : 70.30",
        "bandwidth    : 140.60",
        "average of 140.6 GB/s, but its rows",
    ),
    ("nccl.out", "# Out of bounds", "# Out of", "'# Out of bounds values' is missing"),
    (
        "nccl.out",
        "   algbw   busbw #wrong     time",
        "   fasbw   busbw #wrong     time",
        "not known",
    ),
    (
        "nvbandwidth.out",
        "Running host_to_device_memcpy_ce.",
        "Running",
        "of its first test case is",
    ),
    ("nvbandwidth.out", "  276.07", "  176.07", "says SUM .*_read1 1657.53, but its matrix gives"),
    ("nvbandwidth.out", "  276.07", "  27x.07", "but its matrix gives"),
    ("nvbandwidth.out", "SUM host_device_latency_sm", "SM", "no whole matrix of 'host_device_lat"),
    (
        "nvbandwidth.out",
        "Waived: \n",
        "Error: Invalid value when checking\n",
        "nvbandwidth says 'Error",
    ),
    ("nvbandwidth.out", "NOTE: The reported", "The reported", "closing line 'NOTE"),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), REFUSALS)
def test_what_is_refused(name: str, old: str, new: str, said: str) -> None:
    text = (DATA / name).read_text()
    assert old in text
    reason = refused(form_of(Path(name)), text.replace(old, new, 1))
    assert re.search(said, reason), reason


def test_gpcnet_without_its_tables_is_refused() -> None:
    assert "table of isolated network tests is missing" in refused(
        "gpcnet", "NetworkLoad Tests v1.3\n"
    )


def test_figures_of_gpcnet_may_be_below_1() -> None:
    text = (DATA / "gpcnet.out").read_text()
    for old, new in ((" 5.3 |", "0.25 |"), ("11.2 |", " 0.5 |"), ("2.1X |", "2.0X |")):
        text = text.replace(old, new, 1)
    assert 0.5 in [figure.value for figure in read("gpcnet", text)]


def test_a_value_of_npb_begins_behind_the_first_equals_sign() -> None:
    text = (DATA / "npb-mpi.out").read_text()
    found = read("npb", re.sub(r"(?m)^ Class( +)= +S$", r" Class\1= a = b", text))
    assert {figure.labels["class"] for figure in found} == {"a = b"}


@pytest.mark.parametrize(("score", "agrees"), [("0.001005", True), ("0.00103", False)])
def test_a_small_score_of_io500_agrees_within_a_hundredth(score: str, agrees: bool) -> None:
    lines = (DATA / "io500.out").read_text().split("\n")
    small = [
        re.sub(r"\S+ (GiB/s|kIOPS) ", r"0.001 \1 ", line) for line in lines if "RESULT" in line
    ]
    total = f"[SCORE ] Bandwidth 0.001 GiB/s : IOPS 0.001 kiops : TOTAL {score}\n"
    reason = refused("io500", "\n".join([*small, total]))
    assert reason == "" if agrees else "but its phases give 0.001" in reason


@pytest.mark.parametrize(
    ("name", "rows"), [("mdtest", 10), ("mdtest-1.8", 8), ("mdtest-3-ranks-and-times", 6)]
)
def test_mdtest_without_one_of_its_rows_is_refused(name: str, rows: int) -> None:
    lines = (DATA / f"{name}.out").read_text().split("\n")
    of_rates = [i for i, one in enumerate(lines) if re.match(r"\s+(Directory|File|Tree) ", one)]
    for row in of_rates[:rows]:
        reason = refused("mdtest", "\n".join([*lines[:row], *lines[row + 1 :]]))
        assert "its summary has no row '" in reason


def test_the_page_s_own_example_is_a_parser() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/outputs.md").read_text()
    ((code, sample),) = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) <= 20
    module: dict[str, Any] = {}
    exec(code, module)
    (figure,) = module["parse"](sample)
    assert (figure.name, figure.value, figure.unit) == ("rate", 217.4, "Gflop/s")
    for end in range(sample.index("done")):
        with pytest.raises(ValueError, match="closing line 'done' is missing"):
            module["parse"](sample[:end])


@pytest.mark.parametrize(
    ("version", "bandwidth", "unit"),
    [
        ("2021.3", 4194304 / 410.04, "MB/s"),
        ("2021.3", 4194304 / 410.04 / 1.048576, "MiB/s"),
        ("4.1", 4194304 / 410.04, "MB/s"),
        ("4.1", 2 * 4194304 / 410.04, "MB/s"),
        ("2021.3", 4 * 4194304 / 410.04 / 1.048576, "MiB/s"),
        ("2021.3", 3 * 4194304 / 410.04, "MB/s"),
        ("2018", 3 * 4194304 / 410.04, "MB/s"),
        ("2017.2", 3 * 4194304 / 410.04, "MiB/s"),
    ],
)
def test_imb_s_megabytes_are_what_bytes_and_time_give_or_its_version_s(
    version: str, bandwidth: float, unit: str
) -> None:
    """Of 4,194,304 bytes in 410.04 us, moved once, twice or four times."""
    text = (DATA / "imb.out").read_text().replace("10229.01", f"{bandwidth:.2f}")
    figures = read("imb", text.replace("Benchmarks 2021.3", f"Benchmarks {version}"))
    (figure,) = (each for each in figures if each.value == float(f"{bandwidth:.2f}"))
    assert (figure.name, figure.unit) == ("bandwidth", unit)


def test_what_an_extended_run_of_io500_adds_stands_anywhere() -> None:
    text = (DATA / "io500-extended.out").read_text()
    (added,) = re.findall(r".*ior-rnd1MB-read.*\n", text)
    first = text.index("[RESULT]")
    moved = text[:first] + added + text[first:].replace(added, "")
    assert read("io500", moved) == read("io500", text)


@pytest.mark.parametrize(
    ("highest", "lowest", "mean", "fits"),
    [
        (2.0, 1.0, 2.01, True),
        (2.0, 1.0, 2.02, False),
        (2.0, 1.0, 0.99, True),
        (2.0, 1.0, 0.98, False),
        (200.0, 100.0, 200.5, False),
    ],
)
def test_a_mean_of_ior_may_be_outside_by_rounding_alone(
    highest: float, lowest: float, mean: float, fits: bool
) -> None:
    row = {"operation": "write", "bwMaxMIB": highest, "bwMinMIB": lowest, "bwMeanMIB": mean}
    text = json.dumps({"Version": "4", "Finished": "now", "summary": [row]})
    assert ("is not between" in refused("ior", text)) != fits


def test_tests_of_ior_that_differ_in_size_are_labelled_by_it() -> None:
    """Three tests of one output, of which two have the same sizes."""
    text = (DATA / "ior-3.3-two-tests.out").read_text()
    second = next(
        line
        for line in text.split("\n")
        if line.startswith("write") and " 1701.00" in line and "POSIX" in line
    )
    small = second.replace("26214400 26214400", "26214400  1048576")
    third = small.replace("   NA     1 ", "   NA     2 ").replace("1701.00", "1702.00")
    ran = next(line for line in text.split("\n") if line.startswith("write     1701.00"))
    text = text.replace(ran, f"{ran}\n{ran}").replace(second, f"{small}\n{third}")
    found = {figure.full_name: figure.value for figure in read("ior", text)}
    assert {name: value for name, value in found.items() if "_max" in name} == {
        "write_max{bytes=26214400}": 1499.68,
        "write_max{bytes=1048576}": 1701.0,
        "write_max{bytes=1048576,test=1}": 1702.0,
    }
    text = (DATA / "ior-json.out").read_text()
    summary = text[text.index('"summary": [') :]
    other = summary.replace('"TestID": 0', '"TestID": 1')
    other = other.replace('"blockSize": 1048576', '"blockSize": 4194304')
    both = other.split("[", 1)[1].rpartition("]")[0]
    whole = text.replace(summary, summary.replace("]", f",{both}]", 1))
    names = [figure.full_name for figure in read("ior", whole)]
    assert names[0] == "write_max{block=1048576}" and names[-1] == "read_mean{block=4194304}"


SIZED = {"osu-7-bcast-full": 1, "imb": 0, "imb-ext": 4, "nccl": 16777216, "osu-5-bw": 1}


@pytest.mark.parametrize(("name", "least"), SIZED.items())
def test_sizes_have_one_name_in_every_format(name: str, least: int) -> None:
    figures = read(form_of(DATA / f"{name}.out"), (DATA / f"{name}.out").read_text())
    sizes = [one.labels["bytes"] for one in figures if "bytes" in one.labels]
    assert sizes and all(isinstance(size, int) for size in sizes) and min(sizes) == least


def test_groups_of_imb_are_labels() -> None:
    text = (DATA / "imb.out").read_text()
    old = "# ( 2 additional processes waiting in MPI_Barrier)"
    figures = read(
        "imb", text.replace(old, "# ( 3 groups of 2 processes each running simultaneous )")
    )
    assert {figure.labels["groups"] for figure in figures if "groups" in figure.labels} == {3}


def test_hpl_1_checks_three_residuals() -> None:
    text = (DATA / "hpl.out").read_text()
    (line,) = (line for line in text.split("\n") if line.endswith("PASSED"))
    old = "||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0674622 ...... PASSED"
    assert read("hpl", text.replace(line, "\n".join([old] * 3))) == read("hpl", text)
    third = "\n".join([old, old, old.replace("PASSED", "FAILED")])
    assert "'FAILED'" in refused("hpl", text.replace(line, third))


def test_labels_are_part_of_a_metric_s_name(tmp_path: Path) -> None:
    test = a_test(metrics={"from": "osu"})
    (tmp_path / "stdout").write_text((DATA / "osu-7-barrier.out").read_text())
    (figure,), findings = measure(test, tmp_path)
    assert figure == MetricValue("latency{benchmark=MPI Barrier Latency}", 1.41, "us", "lower")
    assert findings == []
    (tmp_path / "stdout").write_text((DATA / "ior.out").read_text())
    figures, (finding,) = measure(test, tmp_path)
    assert (figures, finding.code) == ([], NO_FIGURE)
    assert finding.text.startswith("stdout is not a whole osu output: its title '# OSU")


def test_too_many_figures_are_refused() -> None:
    tests = range(MAX_FIGURES + 1)
    reason = refused("osu", "".join(f"# OSU {n} Test v7.3\n# Latency (us)\n1.0\n" for n in tests))
    assert "50001 figures; the maximum is 50000" in reason
    assert "more than 200" in refused("osu", f"# OSU {'a' * 300} v7\n# Latency (us)\n1.5\n")


def test_a_table_of_network_test_without_its_last_rows_is_refused() -> None:
    """It has no closing line. A site that prints other tests has a table of its own."""
    text = (DATA / "gpcnet-network-test.out").read_text()
    rows = [match.start() for match in re.finditer(r"\n\|.*(?:usec|rank) \|", text)]
    for row in rows:
        assert refused("gpcnet", text[: row + 1])
    own = text[: rows[0]] + text[rows[-1] :]
    assert {figure.labels["test"] for figure in read("gpcnet", own)} == {
        "Multiple Alltoall (4096 B)"
    }
    assert "the last row is 'Multiple Alltoall'" in refused(
        "gpcnet", own[: own.rstrip().rindex("\n") + 1]
    )


def test_repetitions_of_ior_s_csv() -> None:
    """The largest, the least and the mean of them; as many of reading as of writing."""
    text = (DATA / "ior-csv.out").read_text()
    _, *rows = text.splitlines(keepends=True)
    more = [row.replace(",0\n", ",1\n") for row in rows]
    more = [more[0].replace("812.4", "822.4"), more[1].replace("1900.1", "1900.3")]
    figures = {figure.name: figure.value for figure in read("ior", text + "".join(more))}
    assert figures == pytest.approx(
        {
            "write_max": 822.4,
            "write_min": 812.4,
            "write_mean": 817.4,
            "read_max": 1900.3,
            "read_min": 1900.1,
            "read_mean": 1900.2,
        }
    )
    assert "not as many rows" in refused("ior", text + more[0])
    for damaged in ("wrte,", ",", "read: write,"):
        said = refused("ior", text.replace("\nwrite,", f"\n{damaged}"))
        assert "it should begin with write or read" in said
    warned = text.replace("\nread,", "\nWARNING: slow, retried\nread,")
    assert read("ior", warned) == read("ior", text)
    assert find_format("ior").passed_over(warned) == ["WARNING: slow, retried"]


def test_lammps_that_is_too_old_is_named() -> None:
    text = "LAMMPS (10 Oct 2010)\nLoop time of 2.1 on 4 procs for 100 steps with 32000 atoms\n"
    assert refused("lammps", text) == (
        "it is of LAMMPS (10 Oct 2010), which prints no closing line 'Total wall time:'; LAMMPS of "
        r"2015 and later is read; of this one, take the time by `find: '^Loop time of (\S+)'`"
    )
    assert "closing line 'Total wall time:' is missing" in refused(
        "lammps", text.replace("2010", "2015")
    )


def test_hpcg_s_rating_on_the_screen_is_the_same() -> None:
    text = (DATA / "hpcg-intel.out").read_text()
    assert "ends with the rating" in refused(
        "hpcg", text[: text.index(" Final Summary ::    HPCG")]
    )
    line = "HPCG result is VALID with a GFLOP/s rating of 19.309872\n"
    assert read("hpcg", line + text) == read("hpcg", text)
    assert refused("hpcg", line)


def test_rows_of_nccl_in_other_versions() -> None:
    text = (DATA / "nccl.out").read_text()
    whole = read("nccl", text)
    blank = text.replace("     sum      -1 ", "                ")  # alltoall of 2.11
    assert [one.labels.get("redop") for one in read("nccl", blank)[1:]] == [None] * 6
    unchecked = re.sub(r"(\d\.\d\d) {6}0", r"\1    N/A", text)
    assert "N/A" in unchecked and read("nccl", unchecked) == whole
    timed = re.sub(r"(#wrong)(\s*\n)", r"\1 timestamp\2", text)
    timed = re.sub(r"(\.00      0)\n", r"\1  2026-11-29 10:00:00\n", timed)
    assert "10:00:00" in timed and read("nccl", timed) == whole
    each = re.sub(r"#wrong", "#wrong i_min i_max i_p99 i_cv%", text)
    each = re.sub(r"(\d\.\d\d      0)", r"\1 170.1 190.2 189.9 2.1", each)
    assert read("nccl", each) == whole


def test_rows_of_nvbandwidth_s_bisection() -> None:
    text = (DATA / "nvbandwidth.out").read_text()
    waived = re.sub(r"(?s)Running .*(?=NOTE)", "Waived: \n", text)
    assert "no test case was run" in refused("nvbandwidth", waived)
    block = (
        "Running multinode_bisect_write_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "               0\n 0->12    700.10\n12-> 0    701.20\n\n"
        "SUM multinode_bisect_write_ce 1401.30\n\nNOTE:"
    )
    figures = read("nvbandwidth", text.replace("NOTE:", block))
    assert [one.labels["row"] for one in figures[-3:-1]] == ["0->12", "12->0"]


def test_json_of_ior_may_have_lines_above_and_below() -> None:
    text = (DATA / "ior-json.out").read_text()
    assert read("ior", f"on n001: {{4}}\n{text}\ndone }}\n") == read("ior", text)
    assert "JSON is not whole" in refused("ior", f"on n001\n{text}{text}")


def test_lines_that_are_passed_over_are_told(tmp_path: Path) -> None:
    lines = (DATA / "osu-5-bw.out").read_text().splitlines(keepends=True)
    (tmp_path / "stdout").write_text(
        "".join([*lines[:4], "UCX  WARN  lost\n", *lines[4:], "done\n"])
    )
    figures, (notice,) = measure(a_test(metrics={"from": "osu"}), tmp_path)
    assert len(figures) == len(read("osu", "".join(lines)))
    assert notice == (
        PASS,
        "stdout: 1 line is not known and passed over; the first: 'UCX  WARN  lost'",
    )
    for name in ("mdtest-verbose", "nccl"):
        form = find_format(name.partition("-")[0])
        assert form.passed_over((DATA / f"{name}.out").read_text()) == []
    text = (DATA / "mdtest-verbose.out").read_text().replace("   File stat", "lost 1\n   File stat")
    assert find_format("mdtest").passed_over(text) == ["lost 1"]
    text = (DATA / "nccl.out").read_text().replace("    16777216", "lost 1\n    16777216")
    assert find_format("nccl").passed_over(text) == ["lost 1"]
    first, _, rest = (DATA / "ior.out").read_text().rpartition("\nread ")
    assert find_format("ior").passed_over(f"{first}\nlost 1\nread {rest}") == ["lost 1"]
    text = (DATA / "imb.out").read_text().replace("            8 ", "lost 1\n            8 ", 1)
    assert find_format("imb").passed_over(text) == ["lost 1"]


def test_an_unknown_format_is_told_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'mdtest'"):
        find_format("mdtst")
    with pytest.raises(ValueError, match="did you mean 'nccl'"):
        find_format("nccl-tests")
    with pytest.raises(ValueError, match=r"known are [a-z]+, "):
        find_format("../../etc/passwd")


def test_a_matrix_of_many_ranks_is_read_in_time() -> None:
    """4,096 ranks in under 10 s on 2 cores: here 512, a 64th of the numbers."""
    ranks = 512
    names = [f"nid{rank:05d}:{rank}" for rank in range(ranks)]
    head = f"START mpiGraph v1.5\nProcs\t{ranks}\n"
    parts = [head]
    for way, word in (("Send", "to"), ("Recv", "from")):
        parts.append(f"{way} max\t1234.567000\n{way} avg\t1234.567000\n\n")
        parts.append(f"{way}\t" + "\t".join(names) + "\t\n")
        for rank, name in enumerate(names):
            cells = ["1234.567"] * ranks
            cells[rank] = "0.000"
            parts.append(f"{name} {word}\t" + "\t".join(cells) + "\t\n")
    text = "".join([*parts, "END mpiGraph\n"])
    begun = time.process_time()
    figures = read("mpigraph", text)
    assert time.process_time() - begun < 5
    assert {figure.value for figure in figures} == {1234.567}


# ---- holes ------------------------------------------------------------------------------------


HOLES = [
    ("imb", r"# Benchmarking Barrier.*\n.*\n", "'# Benchmarking' is missing"),
    ("imb", r"# Benchmarking Barrier(?:.*\n)*?(?=.*\n# Benchmarking Uni)", "lists 'Barrier'"),
    ("imb", r" +4 .*\n(?=\n*#-+\n# Benchmarking Barrier)", "sizes differ"),
    ("imb-multi", r"# Benchmarking Multi-PingPing.*\n", "'# Benchmarking' is missing"),
    ("imb-multi", r"# Benchmarking Multi-PingPing(?:.*\n)*?(?=#-+\n# Bench)", "lists 'PingPing'"),
    ("imb-multi", r"# \( 2 groups.*\n", "'# #processes' of 'Multi-PingPong' is missing"),
    ("imb-ext", r"# Benchmarking Ibcast.*\n.*\n", "'# Benchmarking' is missing"),
    ("ior-2.10", r"Max Read:.*\n", "not of the operations"),
    ("ior-2.10", r"Max Write:.*\n", "not of the operations"),
    ("ior-2.10-verbose", r"Operation .*\n", "head of its summary"),
    ("ior-3.0", r"Operation .*\n", "head of its summary"),
    ("ior-3.0", r"Summary of.*\nOperation .*\n", "head of its summary"),
    ("ior-3.3-two-tests", r"write +1701.00 +1701.00 .*\n", "row of write"),
    ("ior-json", r'"operation": "write"(?:.*\n)*?(?=.*"operation": "read")', "row of write"),
    ("lammps", r"Performance: .*\n", "'Performance: ...' of run 1"),
    ("lammps", r"Performance: .*\n.*CPU use.*\n", "'Performance: ...' of run 1"),
    ("lammps-three-runs", r"Performance: 2.*\n", "'Performance: ...' of run 3"),
    (
        "lammps-three-runs",
        r"Loop time of 0.30(?:.*\n)*?(?=Setting up)",
        "'Loop time of ...' of run 2",
    ),
    ("mdtest-1.8", r"( +Directory .*\n)+", "no row 'Directory"),
    ("mdtest-1.8", r"( +File .*\n)+", "no row 'File"),
    ("mdtest-3-ranks-and-times", r"( +File .*\n){4}", "no row 'File"),
    ("npb-mpi", r" Mop/s/process .*\n", "Mop/s/process"),
    ("npb-omp-two", r" Mop/s/thread .*29.43\n", "Mop/s/thread"),
    ("npb-omp-two", r" Verification .*\n(?:.*\n)*? Class .*\n", "twice"),
    ("npb-omp-two", r" Version .*\n(?:.*\n)*? Class .*\n", "Benchmark Completed"),
    ("osu-3-pt2pt", r"4 .*\n", "between 2 and 8"),
    ("osu-5-latency", r"2 .*\n", "between 1 and 4"),
    ("osu-5-latency", r"\n1 .*", "between 0 and 2"),
    ("osu-5-bw", r"\A.*\n", "title"),
    ("osu-5-bw", r"# OSU MPI Bi.*\n", "title"),
    ("osu-5-bw", r"# OSU MPI Bi.*\n.*\n", "between 4 and 1"),
]


@pytest.mark.parametrize(("name", "hole", "reason"), HOLES)
def test_an_output_with_a_hole_is_refused(name: str, hole: str, reason: str) -> None:
    text = (DATA / f"{name}.out").read_text()
    damaged, count = re.subn(hole, "", text, count=1)
    assert count == 1 and damaged != text
    assert reason in refused(name.partition("-")[0], damaged)


def test_lammps_without_timers_prints_no_speed() -> None:
    """By ``timer off``; nor does a minimisation, nor one in units without a time."""
    text = (DATA / "lammps.out").read_text()
    untimed = re.sub(r"Performance: .*\n|.*CPU use.*\n|.*task timing breakdown.*\n", "", text)
    assert len(read("lammps", untimed)) == 3
    for old, new in (("style    : lj", "style    : si"), ("step     : 0.005", "step     : 0")):
        assert old in text
        other = re.sub(r"Performance: .*\n", "", text.replace(old, new))
        assert len(read("lammps", other)) == 3


def test_imb_of_one_process_may_leave_out_what_it_lists() -> None:
    text = (DATA / "imb.out").read_text()
    only = re.sub(r"# Benchmarking (?!Barrier)\w+ \n(?:.*\n)*?(?=#-+\n# Bench|\n*# All)", "", text)
    only = only.replace("#processes = 4", "#processes = 1")
    assert {figure.labels["processes"] for figure in read("imb", only)} == {1}
