"""``seatrial lint`` and ``seatrial lnet``: findings with sources; routing from a plan."""

from __future__ import annotations

import json

from tests.plugins.facts.test_routing import NODES_OF, PLAN
from tests.programs import Workplace


def test_findings_name_rule_nodes_values_source_and_remedy(place: Workplace) -> None:
    facts = "".join(
        f"node\tn{i}\nnow.huge_percent\t4\n"
        f"now.huge_obtainable_percent\t{10 if i == 3 else 90}\nend\t2\n"
        for i in range(1, 6)
    )
    (place.folder / "f").write_text(facts)
    done = place.seatrial("lint", "f")
    assert done.code == 1
    assert "huge-pages: n3 (1 node)" in done.out
    assert "now.huge_obtainable_percent is 10, now.huge_percent is 4, huge_p" in done.out
    assert "do: " in done.out and "source: Hopper" in done.out
    assert "5 nodes of f, " in done.out and "for want of facts: " in done.out
    (place.folder / "f").write_text(facts.replace("\t10\n", "\t30\n"))
    assert place.seatrial("lint", "f").code == 0
    done = place.seatrial("lint", "--list", "--json")
    assert {"huge-pages", "pcie-width"} <= {rule["name"] for rule in json.loads(done.out)}


def test_a_rule_about_the_machine_accuses_the_machine(place: Workplace) -> None:
    (place.folder / "rules.yaml").write_text(
        "rules:\n"
        "  - {name: counted, about: a., source: s, do: d., holds: role.oss == 21}\n"
        "  - {name: some, about: a., source: s, do: d., holds: role.router >= 1}\n"
        "waivers:\n  - {rules: [some], reason: not delivered}\n"
    )
    (place.folder / "f").write_text("".join(f"node\tn{i}\nx.y\t1\nend\t1\n" for i in range(305)))
    done = place.seatrial("lint", "f", "--rules", "rules.yaml")
    assert done.code == 1
    assert "counted: the machine\n  role.oss is 0: not role.oss == 21" in done.out
    assert "waived: some on the machine: not delivered" in done.out and "305 nodes)" not in done.out


def test_roles_that_must_be_apart_are_seen_in_the_machines_file(place: Workplace) -> None:
    (place.folder / "f").write_text("node\tl1\nx.y\t1\nend\t1\n")
    (place.folder / "machines").mkdir()
    both = "roles-apart: l2 (1 node)\n  has the roles login and mom"
    for mom, told in (("l[2-3]", both), ("m1", "")):
        place.local(roles={"login": "l[1-2]", "mom": mom})
        place.machine.rename(place.folder / "machines" / "here.yaml")
        done = place.seatrial("lint", "f", "-m", "here")
        assert (done.code, told in done.out) == (bool(told), True), done.said
        assert ("source: Franklin: where a login node" in done.out) == bool(told)
        assert "1 node of f, 1 rule: " in done.out


def test_clients_and_servers_of_two_files_are_judged_together(place: Workplace) -> None:
    place.local(roles={"oss": "o1"})
    for node, value in (("n1", 63), ("o1", 16)):
        text = f"node\t{node}\nko2iblnd.peer_credits\t{value}\nend\t1\n"
        (place.folder / node).write_text(text)
    (place.folder / "machines").mkdir()
    place.machine.rename(place.folder / "machines" / "here.yaml")
    done = place.seatrial("lint", "n1", "o1", "-m", "here", "--json")
    found = json.loads(done.out)["findings"]
    assert [(each["rule"], each["nodes"]) for each in found] == [
        ("peer-credits-same-as-servers", "n1")
    ]
    (place.folder / "machines" / "here.yaml").write_text("machine: here\nnodes: {}\n")
    done = place.seatrial("lint", "n1", "-m", "here")
    assert done.code == 3, "its roles are not known"
    assert "here.yaml:2: " in done.err and "no role and group of a node counts" in done.err


def test_what_lnet_generates_is_linted_clean(place: Workplace) -> None:
    plan = place.folder / "routing.yaml"
    plan.write_text(PLAN.replace("shared: o2ib100\n", ""))
    done = place.seatrial("lnet", "generate", "routing.yaml", "-o", "conf")
    assert done.code == 2 and "routing.yaml: servers of o2ib1, " in done.err
    assert "write a network of all servers, such as `shared: o2ib100`" in done.err
    plan.write_text(PLAN)
    done = place.seatrial("lnet", "generate", "routing.yaml", "-o", "conf")
    assert done.code == 0 and "conf: 12 files" in done.out, done.said
    printed = place.seatrial("lnet", "generate", "routing.yaml").out
    assert 'routes="o2ib0 1 1013@gni0 1014@gni0; o2ib1 1' in printed
    assert 'networks="o2ib0(ib0),o2ib100(ib0)"' in printed
    assert 'networks="o2ib1(ib1),o2ib2(ib1),o2ib3(ib1),o2ib4(ib1),o2ib0(ib1)"' in printed
    done = place.seatrial("lnet", "generate", "routing.yaml", "-o", "conf")
    assert done.code == 2 and "is there already" in done.err
    given = [w for name, nodes in NODES_OF.items() for w in ("--read", f"{nodes}=conf/{name}")]
    done = place.seatrial("facts", "collect", "-m", str(place.machine), *given, "--name", "t")
    assert done.code == 0, done.said
    done = place.seatrial("lint", "t", "--routing", "routing.yaml")
    assert done.code == 0 and "no findings" in done.out, done.said
    assert "for want of facts: " in done.out and "lustre-targets" in done.out
    plan.write_text(PLAN.replace('nodes: "oss[01-05]"', 'nodes: "oss[01-04]"'))
    plan.write_text(plan.read_text().replace("10.10.1.101", "10.10.1.102"))
    done = place.seatrial("lint", "t", "--routing", "routing.yaml")
    assert done.code == 1 and "fgr-complete: oss[01-04]" in done.out, done.said


def test_the_routers_of_piz_daint_are_even_over_its_groups(place: Workplace) -> None:
    """12 for data and 2 for metadata on service blades, which run no jobs: 3, 3, 2, 2, 2, 2."""
    levels = "levels: [{router: 4}, {chassis: 64}, {group: 384}]"
    daint = (
        "machine: daint\nscheduler: slurm\ntoolchains: {none: {}}\n"
        'nodes: [{names: "c[0-11]-0c[1-2]s[0-15]n[0-3],c[0-11]-0c0s[1-15]n[0-3]", cores: 16}]\n'
        f'topology: {{kind: dragonfly, names: "c{{c}}-{{r}}c{{k}}s{{s}}n{{n}}", {levels}, ROLES}}\n'
    )
    routers = "c[0-11]-0c0s0n1,c[0,6]-0c0s0n2"
    odd = "c[0-11]-0c0s0n1,c[0-1]-0c0s0n2"
    (place.folder / "conf").write_text("options lnet forwarding=enabled\n")
    (place.folder / "facts").write_text("node\tc0-0c0s0n1\nlnet.forwarding\tenabled\nend\t1\n")
    (place.folder / "machines").mkdir()
    file = place.folder / "machines" / "daint.yaml"
    for written, uneven in (
        (daint.replace("ROLES", f'roles: {{lnet: "{routers}"}}'), ""),
        (daint.replace("ROLES", f'roles: {{lnet: "{odd}"}}'), "uneven.lnet is 2"),
        (daint.replace(", ROLES", "") + f'roles: {{router: "{odd}"}}\n', "uneven.router is 2"),
        (daint.replace(", ROLES", "") + f'roles: {{router: "{odd},x1"}}\n', "not judged"),
    ):
        file.write_text(written)
        role = "lnet" if "lnet" in written else "router"
        done = place.seatrial("lint", "facts", "-m", "daint", "--json")
        judged = json.loads(done.out)
        found = {one["rule"]: one["text"] for one in judged["findings"]}
        if uneven == "not judged":
            assert ["routers-even", "the groups of router are not all known"] in judged["idle"]
        else:
            assert (uneven in found.get("routers-even", "")) and bool(found) == bool(uneven)
        tag = f"{role}{len(found)}"
        given = ("--read", f"{routers if not uneven else odd}=conf")
        done = place.seatrial("facts", "collect", "-m", "daint", *given, "--name", tag)
        assert done.code == 0, done.said
        done = place.seatrial("lint", tag)  # the trial's record has roles and groups
        assert bool(done.code) == bool(found), done.said
        assert ("routers-even: the machine" in done.out) == bool(found)
    shown = place.seatrial("machine", "daint", "--topology").out
    assert ["router", "564", "4", "1"] in [line.split()[:4] for line in shown.splitlines()]
    file.write_text(daint.replace("ROLES", f'roles: {{lnet: "{routers}"}}'))
    assert "Role lnet: 14 nodes, 2 to 3 in each group" in (
        place.seatrial("machine", "daint", "--topology").out
    )
    pair = ("--pair", "c0-0c0s0n1", "c1-0c2s3n0")
    assert "2 hops" in place.seatrial("machine", "daint", "--topology", *pair).out
    place.test("t", logs=False, run={"nodes": 8, "place": "within group, near lnet"})
    done = place.seatrial("list", "suite", "-m", "daint")
    assert done.code == 0 and "left out" not in done.said, done.said


def test_counters_are_judged_as_rates_since_the_collection_before(place: Workplace) -> None:
    place.local()
    own = place.folder / "own"
    for tag, hours, errors in (("a", 0, 7), ("b", 4, 207)):
        clock = 1_800_000_000 + 3600 * hours
        own.write_text(f"now.clock_s\t{clock}\nnow.edac_corrected\t{errors}\n")
        words = ("-m", str(place.machine), "--read", f"n[1-2]={own}", "--name", tag)
        assert place.seatrial("facts", "collect", *words).code == 0
    done = place.seatrial("facts", "rates", "a", "b")
    assert done.code == 0 and "edac_corrected  n1        200        50" in done.out, done.said
    assert place.seatrial("facts", "rates").out == done.out
    done = place.seatrial("lint", "--json")
    found = json.loads(done.out)["findings"]
    assert [(each["rule"], each["nodes"]) for each in found] == [
        ("corrected-errors-rate", "n[1-2]")
    ]
    assert place.seatrial("lint", "a").code == 0
    done = place.seatrial("facts", "rates", "b", "a")
    assert "from b to a: 0 counters rose" in done.out
