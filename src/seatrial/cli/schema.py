"""``seatrial schema``: print the JSON Schema of the files that people write."""

from __future__ import annotations

import json

import click
from msgspec import Struct

from seatrial.hooks import FileKind, load, provided
from seatrial.model.documents import json_schema

FILES = {
    kind.name: kind
    for kind in [
        FileKind("test", "test.yaml", "seatrial.model.test:TestFile"),
        FileKind("machine", "Machine files", "seatrial.model.machine:Machine"),
        FileKind("references", "references.yaml", "seatrial.judge.references:ReferencesFile"),
        FileKind("plan", "plan.yaml", "seatrial.model.plan:Plan"),
        FileKind("score", "score.yaml", "seatrial.results.scores:ScoreFile"),
        FileKind("tune", "tune.yaml", "seatrial.model.tune_file:TuneFile"),
        FileKind("config", "config.yaml: the settings", "seatrial.model.settings:Settings"),
        *provided("seatrial_files"),
    ]
}


@click.command("schema")
@click.argument("file", type=click.Choice(list(FILES)), default="test")
def command(file: str) -> int:
    """Print the JSON Schema of test.yaml (or of a machine, of references, of a plan, of a score,
    of a tuning, ...).

    Editors use it to complete and check keys; for the YAML language server write
    `# yaml-language-server: $schema=test.schema.json` on the first line of a test.
    """
    schema = json_schema(shape_of(file), f"Seatrial: {file}")
    click.echo(json.dumps(schema, indent=2))
    return 0


def shape_of(file: str) -> type[Struct]:
    """Return the Struct of a kind of file."""
    shape: type[Struct] = load(FILES[file].shape)
    return shape
