"""A plan with every criterion, waivers and evidence, as files, and its rehearsal.

stage = acceptance(folder)           # nothing is written yet
stage.play_all()                     # its trials, at times that are always the same
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.plugins.rehearsal.stage import Stage

UGLY = "<script>alert(1)</script>"
WORDS = "a & b | `c` </svg>"


def acceptance(folder: Path) -> Stage:
    """Four components: a vendor's document, answers, speed, stability."""
    stage = Stage(folder, nodes=8)
    stage.machine["about"] = f"A toy of {UGLY}"
    stage.machine["rehearsal"] |= {"node_failures": "2d", "repair": "10m"}
    stage.plan["about"] = f"Acceptance of a toy, {WORDS}"
    stage.plan["outages"] = [{"from": "30m", "to": "40m", "why": f"cooling {UGLY}"}]
    stage.plan["rehearsal"]["assumed"] = [f"Nodes fail every two days {UGLY}"]
    document = folder / "burn-in.pdf"
    document.write_bytes(b"all is well")
    rate = {"rate": {"find": r"rate (\S+)", "unit": "GB/s", "better": "higher"}}
    stage.test("wide", 4, about=UGLY, metrics=rate)
    stage.test("small", 1, about=UGLY)
    stage.test("odd", 2, about=UGLY)
    stage.behave(
        "wide", elapsed={"mean": "2m", "sd": "1s"}, figures={"rate": {"mean": 50, "sd": 1}}
    )
    stage.behave("small", elapsed={"mean": "40s", "sd": "2s"}, fails="4%", hangs="1%")
    stage.behave("odd", elapsed={"mean": "1m", "sd": "1s"}, wrong="5%")
    evidence = {
        "document": document.name,
        "sha256": hashlib.sha256(document.read_bytes()).hexdigest(),
        "signed_by": f"A. Vendor {UGLY}",
        "signed_on": "2026-05-01",
        "about": WORDS,
    }
    stage.component("vendor", about="The vendor's own tests", evidence=[evidence])
    _answers(stage)
    _speed(stage)
    _stability(stage)
    return stage


def _answers(stage: Stage) -> None:
    stage.component(
        "functionality",
        kind="once",
        repeat=20,
        tests=["small", "odd"],
        criteria=[
            {"criterion": "pass_rate", "at_least": "80%"},
            {"criterion": "correct_answers", "at_least": "99%"},
        ],
        waivers=[
            {
                "reason": f"the compiler's fault {UGLY}",
                "by": "both sides",
                "on": "2026-06-01",
                "criteria": ["correct_answers"],
            }
        ],
    )


def _speed(stage: Stage) -> None:
    stage.component(
        "performance",
        kind="isolated_then_full",
        tests={"wide": {"alone": 5, "full": 5}, "small": {"alone": 5, "full": 5}},
        criteria=[
            {"criterion": "slowdown", "at_most": "5%"},
            {"criterion": "figure_of_merit", "metric": "rate", "at_least": 45},
            {"criterion": "within_expected", "within": "5%", "at_least": "90%", "tests": ["wide"]},
            {"criterion": "network", "at_most": 0},
            {"criterion": "findings", "at_most": 0},
        ],
    )


def _stability(stage: Stage) -> None:
    stage.component(
        "stability",
        kind="sustained",
        duration="3h",
        reserve=0,
        tests={"wide": {"copies": 1}, "small": {"copies": 3}},
        criteria=[
            {"criterion": "utilisation", "at_least": "95%"},
            {"criterion": "availability", "at_least": "90%"},
            {"criterion": "mtbf", "at_least": "1h"},
            {"criterion": "jobs_in_flight", "at_least": 3},
            {"criterion": "variability", "at_most": "10%"},
            {"criterion": "accepted_runs", "at_least": 50},
            {"criterion": "mix", "at_most": "5 points"},
        ],
    )
