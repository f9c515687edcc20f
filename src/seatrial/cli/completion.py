"""``seatrial completion``: what makes a shell complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print what makes a SHELL complete commands, options, trials, runs and machines.

    \b
    seatrial completion bash > ~/.local/share/bash-completion/completions/seatrial
    seatrial completion zsh > ~/.zsh/_seatrial        # in a folder of $fpath
    seatrial completion fish > ~/.config/fish/completions/seatrial.fish
    """
    made_by = get_completion_class(shell)
    assert made_by is not None
    program = made_by(context.find_root().command, {}, "seatrial", "_SEATRIAL_COMPLETE")
    click.echo(program.source_template % program.source_vars())
    return 0
