"""``seatrial schema``: print the JSON Schema of the files that people write."""

import click

from seatrial.cli.actions import action

FILES = ("test", "machine", "references", "plan", "score", "tune")


@click.command("schema")
@click.argument("file", type=click.Choice(FILES), default="test")
@action
def command() -> None:
    """Print the JSON Schema of test.yaml (or of a machine, of references, of a plan, of a score,
    of a tuning).

    Editors use it to complete and check keys; for the YAML language server write
    `# yaml-language-server: $schema=test.schema.json` on the first line of a test.
    """
