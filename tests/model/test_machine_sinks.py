"""What is wrong with a machine's sinks, by line; secrets are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.model.machine_file import load_machine

HEAD = "machine: m\nnodes: [{names: m, cores: 4}]\nsinks:\n"  # three lines
HOOK = "name: a, kind: webhook, url: 'http://h'"
DATABASE = "name: a, kind: influxdb, url: 'http://h:8086'"

GOOD = [
    f"{{{HOOK}}}",
    "{name: a, kind: webhook, url: 'env:HOOK', token: 'file:~/.token', body: array}",
    "{name: a-1, kind: webhook, url: 'https://[::1]:8443/a/b?c=d', verify: false}",
    f"{{{DATABASE}, database: d, retention: r, user: u, token: 'env:T'}}",
    f"{{{DATABASE}, org: o, bucket: b, oth_compatible: true}}",
    "{name: a, kind: file, path: ~/events, size: 16MiB, every: 1m, patience: 2d}",
    "{name: a, kind: teams, url: 'env:TEAMS'}",
    "{name: a, kind: mail, to: [root, 'ops@site.example'], events: all}",
    "{name: a, kind: mail, to: [o@s.example], url: 'smtps://h:465', user: u, token: 'env:T'}",
]

BROKEN = [
    ("{kind: file, path: /x}", "name: is missing; it must be given"),
    ("{name: a, kind: kafka}", "kind: 'kafka' is not"),
    ("{name: a b, kind: file, path: /x}", "name: a name must be letters, digits, _- (at most 64)"),
    ("{name: a, kind: file}", "is missing; a sink of the kind file must have it"),
    ("{name: a, kind: file, path: x}", "path: 'x' must be an absolute path"),
    ("{name: a, kind: file, path: /x, url: 'http://h'}", "url: is not a key of a sink of the kind"),
    ("{name: a, kind: webhook, url: 'http://h', database: d}", "database: is not a key of a sink"),
    (f"{{{DATABASE}}}", "give database for InfluxDB 1.x, or org and bucket for 2.x"),
    (f"{{{DATABASE}, database: d, bucket: b}}", "give database for InfluxDB 1.x, or org"),
    (f"{{{DATABASE}, bucket: b}}", "org is missing"),
    (f"{{{DATABASE}, bucket: b, org: o, user: u}}", "user and retention are of InfluxDB 1.x"),
    (f"{{{HOOK}, token: s3cret}}", "token: a secret is not written here"),
    (f"{{{HOOK}, token: 'file:relative'}}", "token: a secret is not written here"),
    (f"{{{HOOK}, size: 1KB}}", "size: 1KB is not between 1KiB and 16MiB"),
    (f"{{{HOOK}, size: 17MiB}}", "size: 17MiB is not between 1KiB and 16MiB"),
    (f"{{{HOOK}, every: 0}}", "every: 0 is not a duration"),
    (f"{{{HOOK}, lines: 0}}", "lines: 0 is less than 1"),
    (f"{{{HOOK}, ca: certs}}", "ca: 'certs' must be an absolute path"),
    ("{name: a, kind: mail}", "is missing; a sink of the kind mail must have it"),
    ("{name: a, kind: mail, to: [a b]}", "to: 'a b' is no address; write e.g."),
    ("{name: a, kind: mail, to: ['-x@h']}", "to: '-x@h' is no address; write e.g."),
    ("{name: a, kind: mail, to: [o@s], url: 'http://h'}", "write e.g. smtp://mail.site:25"),
    ("{name: a, kind: slack, url: 'http://h', body: text}", "body: is not a key of a sink of"),
]

URLS = [
    ("http://me:s3cret@h/", "holds a user or a password"),
    ("ftp://h/s3cret", "is not a URL to which events can be sent"),
    ("http:///s3cret", "is not a URL to which events can be sent"),
    ("http://h:0/s3cret", "is not a URL to which events can be sent"),
    ("http://h:99999/s3cret", "is not a URL"),
    ("http://[h/s3cret", "is not a URL"),
    ("http://h/s3cret word", "holds letters that a URL cannot have"),
    ("http://h/s3cret#part", "holds letters that a URL cannot have"),
    ("http://h/s3cr\u00e9t", "holds letters that a URL cannot have"),
    ("env:not a name", "is not a URL to which events can be sent"),
]


def faults(folder: Path, *sinks: str) -> str:
    file = folder / "m.yaml"
    file.write_text(HEAD + "".join(f"  - {sink}\n" for sink in sinks))
    try:
        load_machine(file)
    except InvalidFiles as error:
        return "\n".join(error.faults)
    return ""


@pytest.mark.parametrize("sink", GOOD)
def test_sinks_as_they_may_be(tmp_path: Path, sink: str) -> None:
    assert faults(tmp_path, sink) == ""


@pytest.mark.parametrize(("sink", "fault"), BROKEN)
def test_sinks_as_they_may_not_be(tmp_path: Path, sink: str, fault: str) -> None:
    found = faults(tmp_path, sink)
    assert "m.yaml:4: sinks[0]" in found
    assert fault in found
    assert "s3cret" not in found


def test_all_faults_of_all_sinks_are_told_at_once(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        "{name: a, kind: kafka}",
        "{name: b, kind: webhook, url: 'ftp://h'}",
        "{name: c, kind: file, path: x, lines: 0}",
        "{kind: file, path: /x}",
        "{name: d, kind: webhook, url: 'http://h', token: s3cret}",
    )
    for place in (
        "[0].kind: ",
        "[1].url: ",
        "[2].lines: ",
        "[2].path: ",
        "[3].name: ",
        "[4].token",
    ):
        assert f"sinks{place}" in found, place
    assert len(found.splitlines()) == 6


@pytest.mark.parametrize(("url", "fault"), URLS)
def test_urls_are_checked_and_not_shown(tmp_path: Path, url: str, fault: str) -> None:
    found = faults(tmp_path, f'{{name: a, kind: webhook, url: "{url}"}}')
    assert f"sinks[0].url: {fault}" in found
    assert "s3cr" not in found


def test_names_are_there_once(tmp_path: Path) -> None:
    found = faults(tmp_path, f"{{{HOOK}}}", f"{{{HOOK}}}")
    assert found.endswith("m.yaml:5: sinks[1].name: a is given twice")
