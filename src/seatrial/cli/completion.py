"""``seatrial completion``: what makes a shell complete commands, options and names.

The scripts ask the command by the variables that click reads (``click.shell_completion``). They are
not those of click, which cut texts at commas, put a space behind ``TAG/``, and do not complete
``--machine=lo``.
"""

from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print what makes a SHELL complete commands, options, trials, runs, tests and machines.

    \b
    seatrial completion bash > ~/.local/share/bash-completion/completions/seatrial
    seatrial completion zsh > ~/.zsh/_seatrial        # in a folder of $fpath
    seatrial completion fish > ~/.config/fish/completions/seatrial.fish
    """
    click.echo(Path(__file__).with_suffix(f".{shell}").read_text(), nl=False)
    return 0
