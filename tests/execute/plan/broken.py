"""Impossible plans: what is written from line 8 on, and what is said of it behind the file."""

from __future__ import annotations

SUSTAINED = "- component: c\n  kind: sustained\n  phases: [two]\n"  # lines 8 to 10

BROKEN: dict[str, tuple[str, list[str]]] = {
    # ---- checklists
    "a checklist that runs tests": (
        "- component: c\n  kind: checklist\n  phases: [two]\n  tests: [small]\n  repeat: 2\n"
        "  criteria: [{criterion: pass_rate, at_least: 1}]\n  items: []\n",
        [
            "11: components[0].tests: is about runs, and a checklist has none; remove it",
            "12: components[0].repeat: is of kind once alone; this is checklist",
            "13: components[0].criteria[0].criterion: pass_rate is about runs; a checklist has "
            "items_passed",
            "14: components[0].items: is missing; a checklist needs items, each with a text",
        ],
    ),
    "items that are none": (
        "- component: c\n  kind: checklist\n  phases: [two]\n  items:\n    - {text: ' '}\n"
        "    - {text: a, id: b c}\n    - {text: a, id: '1'}\n    - {text: a, unit: C}\n"
        "    - {text: a, at_least: 3, at_most: 2}\n",
        [
            "12: components[0].items[0].text: is empty; say what is checked",
            "13: components[0].items[1].id: 'b c': an id must be letters, digits, ._+-",
            "14: components[0].items[2].id: '1' is the id of items[0], too; rename one",
            "15: components[0].items[3].unit: there is no number; give at_least or at_most, or "
            "remove unit",
            "16: components[0].items[4].at_least: 3 is more than at_most, 2",
        ],
    ),
    "items where nobody ticks": (
        "- component: c\n  phases: [two]\n  tests: [small]\n  items: [{text: a}]\n"
        "  criteria: [{criterion: items_passed, at_least: 100%}]\n",
        [
            "11: components[0].items: is of kind checklist alone; this is once",
            "12: components[0].criteria[0].criterion: items_passed is of kind checklist alone; "
            "this is once",
        ],
    ),
    # ---- names and what there is
    "a component twice": (
        "- {component: c, tests: [small]}\n- {component: c, tests: [small]}\n",
        ["9: components[1].component: 'c' is given twice; rename one"],
    ),
    "a name that is no name": (
        "- {component: a b, tests: [small]}\n",
        ["8: components[0].component: 'a b': a name must be letters, digits, ._+-"],
    ),
    "no component": ("  []\n", ["7: components: has no component; give at least one"]),
    "a name that makes a long tag": (
        f"- {{component: {'c' * 99}, tests: [small], phases: [two]}}\n",
        ["8: components[0].component: makes a run tag of 105 letters; the maximum is 100"],
    ),
    "what sbatch does not take": (
        "- component: c\n  tests: [small]\n  slurm: {partition: a b, options: [--array=2, x]}\n",
        [
            "10: components[0].slurm.partition: 'a b' is not a name of Slurm's; "
            "write one word, e.g. gpu",
            "10: components[0].slurm.options[0]: '--array=2' is given by Seatrial itself; "
            "remove it",
            "10: components[0].slurm.options[1]: 'x' is no option; it must begin with -, "
            "e.g. --constraint=a100",
        ],
    ),
    "an unknown phase": (
        "- {component: c, phases: [three], tests: [small]}\n",
        ["8: components[0].phases[0]: no phase 'three'; there are one, two"],
    ),
    "a pattern without a test": (
        "- component: c\n  tests:\n    - small\n    - nothing*\n",
        [
            "11: components[0].tests[1]: 'nothing*' is not a test here; "
            "there are big/huge, big/swept, small, wide"
        ],
    ),
    "a pattern whose tests are taken": (
        "- component: c\n  phases: [two]\n  tests: ['big/*', 'big/h*', 'small']\n",
        [
            "10: components[0].tests[1]: 'big/h*' is about tests of entries above it only; "
            "there are big/huge, big/swept, small, wide"
        ],
    ),
    "an unknown suite": (
        "- {component: c, suites: [nowhere]}\n",
        [
            "8: components[0].suites[0]: nowhere: no such file or folder; "
            "name the folder of a suite or a test"
        ],
    ),
    "an unknown toolchain": (
        "- {component: c, tests: [small], toolchains: [icx]}\n",
        ["8: components[0].toolchains[0]: m has no toolchain 'icx'; it has gcc, clang"],
    ),
    "an unknown parameter": (
        "- {component: c, tests: [wide], settings: {width: 3}}\n",
        ["8: components[0].settings.width: no test here has this parameter; there are size"],
    ),
    "a value that cannot be set": (
        "- {component: c, tests: [wide], settings: {size: ['1,2']}}\n",
        ["8: components[0].settings.size: '1,2' cannot be set: it is empty, or holds a comma"],
    ),
    "a selection that is none": (
        "- {component: c, tests: [small], select: 'a and'}\n",
        [
            "8: components[0].select: -k 'a and': a word is missing; "
            "write e.g. -k 'stream and not (one or threads=2)'"
        ],
    ),
    "a selection that leaves nothing": (
        "- {component: c, tests: [small, wide], select: small}\n",
        [
            "8: components[0].tests[1]: "
            "select leaves no case of wide; remove it here, or change select"
        ],
    ),
    "a key of another kind": (
        "- component: c\n  tests: {small: {copies: 2, alone: 3}}\n  duration: 1h\n  reserve: 2\n",
        [
            "9: components[0].tests.small.alone: is of kind isolated_then_full alone; this is once",
            "9: components[0].tests.small.copies: is of kind sustained alone; this is once",
            "10: components[0].duration: is of kind sustained alone; this is once",
            "11: components[0].reserve: is of kind sustained alone; this is once",
        ],
    ),
    "a key that is none": (
        "- {component: c, tests: {small: {coppies: 2}}}\n",
        ["8: components[0].tests.small.coppies: is not a key here; did you mean 'copies'?"],
    ),
    "an answer to a cause that is none": (
        "- {component: c, tests: [small], retry: {answers: {hangs: never}}}\n",
        [
            "8: components[0].retry.answers.hangs: is not one of boot failure, cancelled, "
            "failed, hung, lost, misplaced, node failure, out of memory, performance, timeout, "
            "wrong answer"
        ],
    ),
    # ---- sizes, copies, shares, caps
    "a test larger than the phase": (
        "- component: c\n  tests:\n    - small\n    - big/huge\n",
        [
            "11: components[0].tests[1]: big/huge needs 6 nodes; there are 4 in phase one",
        ],
    ),
    "all tests larger than the phase": (
        "- {component: c, tests: ['big/*'], select: n=8}\n",
        [
            "8: components[0].tests[0]: select leaves no case of big/huge; remove it here, or "
            "change select",
            "8: components[0].tests[0]: big/swept needs 8 nodes; there are 4 in phase one",
        ],
    ),
    "shares above 100 %": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {share: 60%}\n    wide: {share: 0.5}\n",
        ["12: components[0].tests: the shares add up to 110 %: small 60 % + wide 50 %"],
    ),
    "one share above 100 %": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {share: 160%}\n",
        [
            "13: components[0].tests.small.share: 160% is more than the machine (100%)",
        ],
    ),
    "nothing left for a weight": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {copies: 8}\n    wide: {}\n",
        [
            "14: components[0].tests.wide: shares and copies take the whole machine in phase two; "
            "nothing is left for wide: give it fill: true, or a share"
        ],
    ),
    "shares and copies above 100 %": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {share: 60%}\n    wide: {copies: 1}\n",
        [
            "12: components[0].tests: shares and copies add up to 110 %: "
            "small 60 % + wide 50 % (copies) in phase two; the machine has 100 %"
        ],
    ),
    "more copies than the share holds": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {share: 20%, copies: 2}\n",
        [
            "13: components[0].tests.small.copies: 2 of small are 25 % in phase two, "
            "more than its share, 20%; give fewer, or a larger share"
        ],
    ),
    "a mix without an upper bound": (
        SUSTAINED + "  duration: 1d\n  criteria:\n    - {criterion: mix, at_least: 5 points}\n"
        "    - {criterion: mix, at_most: five, tests: [small]}\n",
        [
            "13: components[0].criteria[0].at_least: a mix has no lower bound; "
            "give at_most, e.g. 5 points",
            "14: components[0].criteria[1].at_most: 'five' is no percentage points; "
            "write e.g. 5 points",
        ],
    ),
    "copies that do not fit": (
        SUSTAINED + "  duration: 1d\n  tests:\n    wide: {copies: 3}\n",
        ["13: components[0].tests.wide.copies: 3 of wide take 12 nodes; there are 8 in phase two"],
    ),
    "copies that do not fit together": (
        SUSTAINED + "  duration: 1d\n  tests:\n    wide: {copies: 2}\n    small: {copies: 1}\n",
        ["12: components[0].tests: all copies together take 9 nodes; there are 8 in phase two"],
    ),
    "a cap of zero": (
        SUSTAINED
        + "  duration: 1d\n  tests:\n    wide: {most: 0}\n    small: {copies: 2, most: 0}\n",
        [
            "13: components[0].tests.wide.most: "
            "0 lets no run of it start; remove the test, or most for no cap",
            "14: components[0].tests.small.most: "
            "0 lets no run of it start; remove the test, or most for no cap",
        ],
    ),
    "a test that is switched off by a zero": (
        SUSTAINED + "  duration: 1d\n  tests:\n    wide: {share: 0%}\n    small: {copies: 0}\n"
        "    big/huge: {weight: 0, copies: 0}\n    big/swept: {share: 50%, copies: 0}\n",
        [
            f"{line}: components[0].tests.{key}: 0 does not switch a test off; "
            "leave the test out of tests, or out by select"
            for line, key in (
                (13, "wide.share"),
                (14, "small.copies"),
                (15, "big/huge.copies"),
                (15, "big/huge.weight"),
            )
        ],
    ),
    "caps of zero": (
        SUSTAINED + "  duration: 1d\n  file_system: scratch\n  caps:\n    machine: 0\n"
        "    per_target: 0\n  tests: [small]\n",
        [
            "14: components[0].caps.machine: "
            "0 lets no run start; give 1 or more, or remove machine for no cap",
            "15: components[0].caps.per_target: "
            "0 lets no run start; give 1 or more, or remove per_target for no cap",
        ],
    ),
    "copies above caps": (
        SUSTAINED + "  duration: 1d\n  file_system: scratch\n  caps: {machine: 4, per_target: 2}\n"
        "  tests:\n    small: {copies: 5, most: 4}\n",
        [
            "13: components[0].caps.machine: 4 is less than all copies together, 5",
            "13: components[0].caps.per_target: "
            "2 on each of 2 targets is less than the 5 copies on scratch",
            "15: components[0].tests.small.copies: 5 are kept on nodes, but most is 4",
        ],
    ),
    "claims of what only fills in": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {fill: true, weight: 2}\n"
        "    wide: {share: 10%, weight: 1}\n",
        [
            "13: components[0].tests.small.weight: "
            "is a claim, and fill is for tests without one; remove one of them",
            "14: components[0].tests.wide.weight: give a weight or a share, not both",
        ],
    ),
    # ---- time
    "no duration": (
        SUSTAINED + "  tests: [small]\n",
        ["8: components[0].duration: is missing; a sustained component needs it, e.g. 10d"],
    ),
    "a duration shorter than a run": (
        SUSTAINED + "  duration: 30m\n  tests: [wide, small]\n",
        [
            "11: components[0].duration: 30m is shorter than a run may take: wide 1 h 0 m; "
            "give more, or leave them out"
        ],
    ),
    "a duration shorter than runs of several tests": (
        SUSTAINED + "  duration: 5m\n  tests: [wide, small]\n",
        [
            "11: components[0].duration: 5m is shorter than a run may take: small 10 m 0 s, "
            "wide 1 h 0 m; give more, or leave them out"
        ],
    ),
    # ---- faults that must not hide behind others
    "sums beside a phase that is none": (
        SUSTAINED.replace("two", "three") + "  duration: 1h\n  caps: {machine: 2}\n"
        "  tests:\n    small: {share: 70%, copies: 3}\n    wide: {share: 50%, copies: 6}\n",
        [
            "10: components[0].phases[0]: no phase 'three'; there are one, two",
            "12: components[0].caps.machine: 2 is less than all copies together, 9",
            "13: components[0].tests: the shares add up to 120 %: small 70 % + wide 50 %",
            "15: components[0].tests.wide.copies: 6 of wide take 24 nodes; there are 8",
        ],
    ),
    "sums beside quantities that are none": (
        SUSTAINED + "  duration: soon\n  caps: {machine: 2}\n  tests:\n"
        "    small: {share: 70%, most: few}\n    wide: {share: 50%, copies: 3}\n"
        "    big/huge: {share: half, deck: {source: nowhere}}\n",
        [
            "11: components[0].duration: 'soon' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "12: components[0].caps.machine: 2 is less than all copies together, 3",
            "13: components[0].tests: the shares add up to 120 %: small 70 % + wide 50 %",
            "14: components[0].tests.small.most: 'few' is not a whole number or empty",
            "15: components[0].tests.wide.copies: 3 of wide take 12 nodes; "
            "there are 8 in phase two",
            "16: components[0].tests.big/huge.deck.source: suite/big/huge/nowhere does not exist",
            "16: components[0].tests.big/huge.share: 'half' is not a share; write e.g. 0.05 or 5%",
        ],
    ),
    "copies beside a toolchain and a parameter that are none": (
        SUSTAINED + "  duration: 1h\n  toolchains: [icx]\n  settings: {width: 3}\n"
        "  tests: {wide: {copies: 3}}\n",
        [
            "12: components[0].toolchains[0]: m has no toolchain 'icx'; it has gcc, clang",
            "13: components[0].settings.width: no test here has this parameter; there are size",
            "14: components[0].tests.wide.copies: 3 of wide take 12 nodes; "
            "there are 8 in phase two",
        ],
    ),
    "a test that is none beside a suite that is none": (
        "- component: c\n  suites: [nowhere, suite]\n  tests: [smal, other, 'x*']\n"
        "  settings: {width: 3}\n"
        "  criteria: [{criterion: figure_of_merit}, {criterion: mtbf, at_least: 1h, metric: x}]\n",
        [
            "9: components[0].suites[0]: nowhere: no such file or folder; "
            "name the folder of a suite or a test",
            "10: components[0].tests[0]: 'smal' is not a test of the suites that exist; "
            "did you mean 'small'?",
            "12: components[0].criteria[0].metric: figure_of_merit needs it; name the metric",
            "12: components[0].criteria[1].metric: mtbf is about no metric; remove it",
        ],
    ),
    "what a rehearsal assumes beside a suite that is none": (
        "- {component: c, suites: [nowhere]}\nrehearsal: {tests: {gone: {elapsed: soon}}}\n",
        [
            "8: components[0].suites[0]: nowhere: no such file or folder; "
            "name the folder of a suite or a test",
            "9: rehearsal.tests.gone.elapsed: 'soon' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
        ],
    ),
    # ---- what only follows from what could not be decoded
    "what a criterion that is none brings about": (
        "- component: c\n  phases: [two]\n  tests: [small]\n  criteria:\n"
        "    - {criterion: correct_answerz, at_least: 100%}\n"
        "    - {criterion: pass_rate, at_least: 99%}\n"
        "    - {criterion: pass_rate, at_least: 98%, tests: small}\n"
        "  waivers: [{reason: r, by: A, on: 2026-05-01, criteria: [correct_answers]}]\n",
        [
            "12: components[0].criteria[0].criterion: 'correct_answerz' is not one of "
            "accepted_runs, availability, correct_answers, every_test, figure_of_merit, findings, "
            "gauge, "
            "items_passed, jobs_in_flight, mix, mtbf, network, pass_rate, slowdown, utilisation, "
            "variability, within_expected",
            "14: components[0].criteria[2].tests: 'small' is not a list; write [small]",
        ],
    ),
    "what a kind that is none brings about": (
        "- component: c\n  kind: sustaned\n  phases: [two]\n  duration: 1d\n"
        "  tests: {small: {share: 50%}}\n"
        "  criteria: [{criterion: jobs_in_flight, at_least: 2}]\n",
        [
            "9: components[0].kind: 'sustaned' is not one of checklist, isolated_then_full, once, "
            "sustained"
        ],
    ),
    "what tests beside documents that could not be read bring about": (
        "- component: c\n  tests: [3]\n  evidence: [{document: m.yaml, sha256: DIGEST, "
        "signed_by: A, signed_on: 2026-05-01}]\n"
        "  criteria: [{criterion: pass_rate, at_least: 1}]\n",
        ["9: components[0].tests[0]: 3 is not text; put it in quotes if it is meant as text"],
    ),
    "what tests that could not be read bring about": (
        SUSTAINED + "  duration: 11m\n  tests: [small, 3]\n",
        [
            "12: components[0].tests[1]: 3 is not text; put it in quotes if it is meant as text",
        ],
    ),
    "durations that are none": (
        SUSTAINED + "  duration: 10 moons\n  tests: {small: {quiet_for: soon}}\n"
        "  stagger: {starts: 2, per: 0}\n  watch: {short_for: x, silent_for: 1 y, again: no}\n"
        "  exclude: {within: -1, most: 200%}\n",
        [
            "11: components[0].duration: '10 moons' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "12: components[0].tests.small.quiet_for: 'soon' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "13: components[0].stagger.per: 0 is not a duration between 1 ms and 10 years",
            "14: components[0].watch.again: 'no' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "14: components[0].watch.short_for: 'x' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "14: components[0].watch.silent_for: '1 y' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "15: components[0].exclude.most: 200% is more than all nodes (100%)",
            "15: components[0].exclude.within: -1 is not a duration between 1 ms and 10 years",
        ],
    ),
    "spans": (
        "- component: c\n  tests: [small]\n  blackouts:\n"
        "    - {from: 2h, to: 1h}\n"
        "    - {from: 2026-05-01T08:00, to: 2026-13-01T08:00Z}\n"
        "    - {from: 0h, to: 2026-05-01T08:00Z}\n"
        "    - {from: 0, to: 1h, nodes: 'n[7-9]', tests: [wide]}\n"
        "    - {from: noon, to: 1h}\n",
        [
            "11: components[0].blackouts[0].to: 1h is not after from, 2h",
            "12: components[0].blackouts[1].from: '2026-05-01T08:00' has no time zone; "
            "write e.g. 2026-05-01T08:00Z or +02:00",
            "12: components[0].blackouts[1].to: '2026-13-01T08:00Z' is not a date; "
            "write e.g. 2026-05-01T08:00Z",
            "13: components[0].blackouts[2].to: "
            "one of from and to is a date, the other a time of the trial; give both alike",
            "14: components[0].blackouts[3].nodes: n9 is not a node of m",
            "14: components[0].blackouts[3].tests[0]: 'wide' is not a test here; there are small",
            "15: components[0].blackouts[4].from: 'noon' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
        ],
    ),
    # ---- file systems, gauges
    "what the machine has not": (
        "- component: c\n  file_system: lustre\n  targets: [mdt7]\n  placement: weighted\n"
        "  caps: {per_target: 2}\n  throttles:\n    - {gauge: heat, high: 1, low: 2}\n"
        "  tests: {small: {file_system: nfs}}\n",
        [
            "9: components[0].file_system: m has no file system 'lustre'; it has scratch, home",
            "10: components[0].targets[0]: no metadata target 'mdt7'; "
            "give file_system; there are none",
            "11: components[0].placement: there are no metadata targets to place on; "
            "give file_system, one whose targets the machine's file names",
            "12: components[0].caps.per_target: there are no metadata targets; "
            "give file_system, one whose targets the machine's file names",
            "14: components[0].throttles[0].gauge: m has no gauge 'heat'; it has load",
            "14: components[0].throttles[0].low: 2 is not below high, 1",
            "15: components[0].tests.small.file_system: m has no file system 'nfs'; "
            "it has scratch, home",
        ],
    ),
    "a target that the file system has not": (
        "- {component: c, tests: [small], file_system: scratch, targets: [mdt0, mdt2]}\n",
        [
            "8: components[0].targets[1]: no metadata target 'mdt2'; "
            "the file systems here have mdt0, mdt1"
        ],
    ),
    "more than a file system bears": (
        SUSTAINED + "  duration: 1d\n  file_system: scratch\n  tests:\n"
        "    small: {copies: 3, opens: 70}\n    wide: {opens: 101}\n",
        [
            "13: components[0].tests: "
            "all copies on scratch hold 210 files open; its targets bear 200",
            "15: components[0].tests.wide.opens: 101 open files of one run are more than "
            "a target of scratch bears: its safe_load is 100",
        ],
    ),
    "more runs than a file system takes": (
        SUSTAINED + "  duration: 1d\n  tests:\n    small: {copies: 7, file_system: scratch}\n",
        ["12: components[0].tests: 7 copies work on scratch, on which the machine's file allows 6"],
    ),
    "a throttle that is stale between two readings": (
        SUSTAINED + "  duration: 1d\n  tests: [small]\n"
        "  throttles: [{gauge: load, high: 8, low: 2, stale_after: 39s}]\n",
        [
            "13: components[0].throttles[0].stale_after: 39s is shorter than load may take from a "
            "reading to the next: its every and timeout are 40.0 s together; "
            "give that or more, or read it more often"
        ],
    ),
    "throttles of no form, and of both": (
        "- component: c\n  phases: [two]\n  tests: {small: {opens: 3}}\n  throttles:\n"
        "    - {gauge: load}\n    - {gauge: load, high: 3}\n    - {gauge: load, low: 3}\n"
        "    - {gauge: load, target: 5, high: 3, low: 1}\n    - {gauge: load, target: .inf}\n"
        "    - {gauge: load, high: 3, low: 1, settle: 1m}\n  gauges: [load, heat]\n",
        [
            "12: components[0].throttles[0].gauge: has no limit; give a target, or high and low",
            "13: components[0].throttles[1].low: is missing; high needs it: give both, or a target "
            "in place of them",
            "14: components[0].throttles[2].high: is missing; low needs it: give both, or a target "
            "in place of them",
            "15: components[0].throttles[3].high: give a target, or high and low; not both",
            "15: components[0].throttles[3].low: give a target, or high and low; not both",
            "16: components[0].throttles[4].target: '.inf' is not a number or empty",
            "17: components[0].throttles[5].settle: is of a target alone; remove it",
            "18: components[0].gauges[1]: m has no gauge 'heat'; it has load",
        ],
    ),
    "targets that no run can meet": (
        "- component: c\n  phases: [two]\n  tests:\n    small: {}\n"
        "    wide: {opens: 9, loads: {load: 6, heat: 1}}\n    big/huge: {opens: 7}\n"
        "    big/swept: {io: light}\n  throttles: [{gauge: load, target: 5}]\n",
        [
            "11: components[0].tests.small: declares nothing for the target of gauge load; give "
            "small opens, loads: {load: NUMBER}, or io: light",
            "12: components[0].tests.wide.loads.load: one run adds 6 to gauge load, whose target "
            "is 5: none would ever start",
            "12: components[0].tests.wide.loads.heat: m has no gauge 'heat'; it has load",
            "13: components[0].tests.big/huge.opens: one run adds 7 to gauge load, whose target "
            "is 5: none would ever start",
        ],
    ),
    "loads of a gauge without a target": (
        "- component: c\n  phases: [two]\n  tests: {small: {loads: {load: 1}}}\n",
        [
            "10: components[0].tests.small.loads.load: no throttle here has a target for this "
            "gauge; remove it"
        ],
    ),
    "criteria on gauges that say nothing": (
        "- component: c\n  phases: [two]\n  tests: [small]\n  criteria:\n"
        "    - {criterion: gauge, at_most: 4}\n"
        "    - {criterion: gauge, gauge: heat, at_most: 4, share: 0}\n"
        "    - {criterion: gauge, gauge: load}\n"
        "    - {criterion: gauge, gauge: load, at_most: 4 files, tests: [small]}\n"
        "    - {criterion: pass_rate, at_least: 1, gauge: load, share: 90%}\n",
        [
            "12: components[0].criteria[0].gauge: the criterion gauge needs it; name a gauge of "
            "the machine",
            "13: components[0].criteria[1].gauge: m has no gauge 'heat'; it has load",
            "13: components[0].criteria[1].share: 0 % would always be met; give a share, e.g. 95%",
            "14: components[0].criteria[2]: gauge has no bound; give at_least, at_most, or both",
            "15: components[0].criteria[3].at_most: '4 files' is no number as the gauge prints it; "
            "write e.g. 400",
            "15: components[0].criteria[3].tests: the criterion gauge is about all the time of "
            "the trial; remove it",
            "16: components[0].criteria[4].gauge: is of the criterion gauge alone; remove it",
            "16: components[0].criteria[4].share: is of the criterion gauge alone; remove it",
        ],
    ),
    "decks on more targets than the space holds": (
        "- component: c\n  phases: [two]\n  file_system: scratch\n  tests:\n"
        "    big/swept: {deck: {source: large, how: per_target}}\n",
        [
            "11: components[0].tests: decks with a copy on each of 2 targets of scratch take "
            "2.9 KiB; its space for decks is 1000 B; give fewer targets, or how: shared"
        ],
    ),
    "a case that no phase has the nodes for": (
        "- {component: c, phases: [one], tests: [small, big/swept]}\n",
        [
            "8: components[0].tests[1]: big/swept{n=8}@gcc needs 8 nodes; there are 4; "
            "leave it out by settings or select, or have a phase of as many nodes"
        ],
    ),
    "decks": (
        "- component: c\n  phases: [two]\n  tests:\n"
        "    small: {deck: {source: nowhere}}\n"
        "    wide: {deck: {source: test.yaml, name: stdout, how: per_target}}\n"
        "    big/huge: {deck: {source: ../../../plan.yaml, name: ../x}, file_system: scratch}\n"
        "    big/swept: {deck: {source: large, how: per_run}, file_system: scratch}\n",
        [
            "11: components[0].tests.small.deck.source: suite/small/nowhere does not exist",
            "12: components[0].tests.wide.deck.how: "
            "needs a file_system with metadata targets; give one, or how: shared",
            "12: components[0].tests.wide.deck.name: 'stdout' is not free: "
            "'stdout' is there already",
            "13: components[0].tests.big/huge.deck.name: "
            "'../x' must be a name inside the run directory; give name",
            "14: components[0].tests.big/swept.deck.how: 1.5 KiB for each of 1 run is more than "
            "the space for decks on scratch, 1000 B",
        ],
    ),
    # ---- criteria, evidence, waivers
    "criteria": (
        "- component: c\n  tests: [small, wide]\n  criteria:\n"
        "    - {criterion: pass_rate}\n"
        "    - {criterion: utilisation, at_least: 92}\n"
        "    - {criterion: mtbf, at_least: 5%}\n"
        "    - {criterion: accepted_runs, at_least: 10%}\n"
        "    - {criterion: jobs_in_flight, at_least: 20}\n"
        "    - {criterion: slowdown, at_least: -5%}\n"
        "    - {criterion: figure_of_merit, metric: speed, at_least: 95%}\n"
        "    - {criterion: figure_of_merit, metric: rate, tests: [wide], at_least: 95%}\n"
        "    - {criterion: variability, at_most: 5%, metric: rate}\n"
        "    - {criterion: availability, at_least: 99%, at_most: 98%, tests: [huge]}\n"
        "    - {criterion: mtbf, at_least: 2d}\n"
        "    - {criterion: figure_of_merit, at_least: 3}\n"
        "    - {criterion: figure_of_merit, metric: rate}\n"
        "    - {criterion: figure_of_merit, metric: rate, tests: [small], at_least: 90, "
        "at_most: 80%}\n"
        "    - {criterion: figure_of_merit, metric: rate, tests: ['s*'], at_least: 9, "
        "at_most: 8}\n",
        [
            "11: components[0].criteria[0]: pass_rate has no bound; "
            "give at_least, at_most, or both",
            "12: components[0].criteria[1].at_least: 92 is more than 100 %; write e.g. 0.95 or 95%",
            "13: components[0].criteria[2].at_least: '5%' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "14: components[0].criteria[3].at_least: '10%' is not a whole number; write e.g. 20",
            "15: components[0].criteria[4].criterion: "
            "jobs_in_flight is of kind sustained alone; this is once",
            "16: components[0].criteria[5].criterion: "
            "slowdown is of kind isolated_then_full alone; this is once",
            "17: components[0].criteria[6].metric: "
            "no test here has the metric 'speed'; there are elapsed, rate",
            "18: components[0].criteria[7].metric: "
            "no test here has the metric 'rate'; there are elapsed",
            "19: components[0].criteria[8].metric: variability is about no metric; remove it",
            "20: components[0].criteria[9].at_least: 99% is more than at_most, 98%",
            "20: components[0].criteria[9].tests[0]: "
            "'huge' is not a test of this component; it has small, wide",
            "21: components[0].criteria[10]: is about the same as criteria[2]; make one of them",
            "22: components[0].criteria[11].metric: figure_of_merit needs it; name the metric",
            "25: components[0].criteria[14].at_least: 9 is more than at_most, 8",
        ],
    ),
    "units of bounds": (
        "- component: c\n  tests: [small]\n  criteria:\n"
        "    - {criterion: figure_of_merit, metric: rate, at_least: 50 us, at_most: 50 furlongs}\n",
        [
            "11: components[0].criteria[0].at_least: "
            "'50 us' is not of the dimension of 1/s; write a unit of that",
            "11: components[0].criteria[0].at_most: "
            "'50 furlongs' is no figure; write e.g. 95%, 12000 or 50 GB/s",
        ],
    ),
    "stages and expectations": (
        "- component: c\n  tests: [small]\n  criteria:\n"
        "    - {criterion: figure_of_merit, metric: rate, stage: full}\n"
        "    - {criterion: pass_rate, at_least: 1, within: 5%, of: median, two_sided: false}\n"
        "    - {criterion: within_expected, at_least: 99%, pooled: true}\n"
        "    - {criterion: within_expected, at_least: 101%, within: much}\n"
        "    - {criterion: figure_of_merit, metric: elapsed, at_least: 95%}\n"
        "    - {criterion: figure_of_merit, metric: elapsed, tests: [small], at_most: soon}\n"
        "    - {criterion: within_expected, within: 5%, stage: half, at_least: 1}\n",
        [
            "11: components[0].criteria[0].stage: runs of kind once have none; "
            "isolated_then_full has; remove it",
            "12: components[0].criteria[1].of: is of within_expected alone; remove it",
            "12: components[0].criteria[1].two_sided: is of within_expected alone; remove it",
            "12: components[0].criteria[1].within: is of within_expected alone; remove it",
            "13: components[0].criteria[2].pooled: "
            "is of pass_rate and correct_answers alone; remove it",
            "13: components[0].criteria[2].within: "
            "within_expected needs it; say how far off a run may be: 5%",
            "14: components[0].criteria[3].at_least: '101%' is more than 100 %; "
            "write e.g. 0.95 or 95%",
            "14: components[0].criteria[3].within: 'much' is not a share; write e.g. 0.05 or 5%",
            "15: components[0].criteria[4].at_least: elapsed of small is better where it is lower: "
            "at_least alone lets slow runs pass; write at_most, e.g. 105%",
            "16: components[0].criteria[5].at_most: 'soon' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "17: components[0].criteria[6].stage: 'half' is not one of alone, full or empty",
        ],
    ),
    "what compares both stages, or is about the whole machine": (
        "- component: c\n  kind: isolated_then_full\n  tests: [small]\n  criteria:\n"
        "    - {criterion: slowdown, at_most: 5%, stage: alone}\n"
        "    - {criterion: mtbf, at_least: 1h, stage: full}\n"
        "    - {criterion: pass_rate, at_least: 1, stage: full}\n"
        "    - {criterion: pass_rate, at_least: 1}\n"
        "    - {criterion: figure_of_merit, metric: elapsed}\n"
        "    - {criterion: figure_of_merit, metric: elapsed, stage: alone}\n",
        [
            "12: components[0].criteria[0].stage: slowdown compares both stages; remove it",
            "13: components[0].criteria[1].stage: mtbf is about the whole machine; remove it",
            "17: components[0].criteria[5]: is about the same as criteria[4]; make one of them",
        ],
    ),
    "evidence and waivers": (
        "- component: c\n  tests: [small]\n"
        "  criteria: [{criterion: pass_rate, at_least: 1}]\n  evidence:\n"
        f"    - {{document: no.pdf, sha256: {'0' * 64}, signed_by: A, signed_on: 2026-05-01}}\n"
        f"    - {{document: m.yaml, sha256: {'0' * 64}, signed_by: '', signed_on: May}}\n"
        "    - {document: gone.pdf, sha256: ab, signed_by: A, signed_on: 2026-05-01}\n"
        "  waivers: [{reason: '', by: A, on: 2026-02-30, criteria: [mtbf]}]\n",
        [
            "12: components[0].evidence[0].document: no.pdf: cannot be read: "
            "No such file or directory; if it comes later, write pending: true",
            "13: components[0].evidence[1].sha256: m.yaml has the checksum DIGEST: "
            "it is not the document that was signed",
            "13: components[0].evidence[1].signed_by: is empty; name who signed",
            "13: components[0].evidence[1].signed_on: 'May' is not a date; write e.g. 2026-05-01",
            "14: components[0].evidence[2].document: gone.pdf: cannot be read: "
            "No such file or directory; if it comes later, write pending: true",
            "14: components[0].evidence[2].sha256: "
            "is not a SHA-256 checksum: 64 hex digits, as sha256sum prints",
            "15: components[0].waivers[0].criteria[0]: "
            "this component has no criterion mtbf; it has pass_rate, every_test",
            "15: components[0].waivers[0].on: '2026-02-30' is not a date; write e.g. 2026-05-01",
            "15: components[0].waivers[0].reason: is empty; a waiver says why, and who agreed",
        ],
    ),
    "waivers of tests, toolchains": (
        "- component: c\n  tests: [small]\n"
        "  criteria:\n    - {criterion: utilisation, at_least: 1}\n"
        "    - {criterion: every_test, at_least: 1}\n"
        "  waivers:\n"
        "    - {reason: r, by: A, on: 2026-05-01, tests: [big], toolchains: ['no*']}\n"
        "    - {reason: r, by: A, on: 2026-05-01, tests: [small], criteria: [utilisation]}\n",
        [
            "12: components[0].criteria[1].at_least: every_test has no bound; remove it",
            "14: components[0].waivers[0].tests[0]: 'big' is not a test of this component; it has "
            "small",
            "14: components[0].waivers[0].toolchains[0]: 'no*' is not a toolchain of the machine; "
            "it has gcc, clang",
            "15: components[0].waivers[1].criteria[0]: utilisation is about the whole machine; "
            "waive it without tests and toolchains",
        ],
    ),
    "ids that are given twice": (
        "- component: c\n  tests: [small]\n"
        "  criteria:\n    - {criterion: pass_rate, at_least: 1, id: R1}\n"
        "    - {criterion: mtbf, at_least: 1h, id: mix}\n"
        "  waivers: [{reason: r, by: A, on: 2026-05-01, criteria: [R1, R2], id: R1}]\n",
        [
            "12: components[0].criteria[1].id: 'mix' is the name of a criterion; choose another",
            "13: components[0].waivers[0].criteria[1]: this component has no criterion R2; "
            "it has pass_rate, mtbf, every_test, R1, mix",
            "13: components[0].waivers[0].id: 'R1' is the id of components[0].criteria[0], too",
        ],
    ),
    "criteria of documents alone": (
        "- {component: d, tests: [small]}\n"
        "- component: c\n  evidence: [{document: m.yaml, sha256: DIGEST, signed_by: A, "
        "signed_on: 2026-05-01}]\n  criteria: [{criterion: pass_rate, at_least: 1}]\n",
        ["11: components[1].criteria: nothing runs here that could meet them; remove them"],
    ),
    # ---- rehearsals, outages, alerts
    "the rest of the plan": (
        "- {component: d, tests: [small]}\n"
        "outages: [{from: 3h, to: 2h, nodes: x1}]\n"
        "alerts: {command: ' ', per: 0, timeout: never}\n"
        "rehearsal:\n  tests:\n"
        "    small: {elapsed: 1h, wrong: 60%, fails: 0.5, metadata: 2}\n"
        "    gone: {elapsed: {mean: 1h, values: [3]}}\n"
        "    wide: {elapsed: {sd: x}, keeps: long, figures: {rate: {mean: 1}}}\n",
        [
            "9: outages[0].nodes: x1 is not a node of m",
            "9: outages[0].to: 2h is not after from, 3h",
            "10: alerts.command: is empty",
            "10: alerts.per: 0 is not a duration between 1 ms and 10 years",
            "10: alerts.timeout: 'never' is not a duration; write e.g. 90s, 5m, 1h30m or 01:30:00",
            "13: rehearsal.tests.small: wrong and fails and hangs add up to 1.1 of its runs; "
            "the maximum is 1",
            "13: rehearsal.tests.small: metadata and objects add up to 2 of its time; "
            "the maximum is 1",
            "14: rehearsal.tests.gone.elapsed: "
            "needs exactly one of mean, values and trial; it has mean and values",
            "14: rehearsal.tests.gone: 'gone' is not a test of the plan; "
            "it has big/huge, big/swept, small, wide",
            "15: rehearsal.tests.wide.elapsed.sd: 'x' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "15: rehearsal.tests.wide.elapsed: "
            "needs exactly one of mean, values and trial; it has none of them",
            "15: rehearsal.tests.wide.figures.rate: no such metric; its tests have none",
            "15: rehearsal.tests.wide.keeps: 'long' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
        ],
    ),
}
