"""Patterns with several groups, as ReFrame has them, become patterns with one."""

import re


def with_one_group(pattern: str, tag: object) -> str:
    """Return a pattern that matches the same, whose only group is the one that ``tag`` names: its
    number, its name, or 0 for the whole match. Raises ValueError."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    number = compiled.groupindex.get(tag, -1) if isinstance(tag, str) else tag
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not 0 <= number <= compiled.groups
    ):
        raise ValueError(f"{pattern!r} has no group {tag!r}")
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", pattern):
        raise ValueError(f"{pattern!r} refers to its groups")
    kept = "".join(_pieces(pattern, number))
    return f"({kept})" if number == 0 else kept


def _pieces(pattern: str, number: int) -> list[str]:
    """Return the pieces of a pattern, with each group but one without a number."""
    out: list[str] = []
    group, at, in_class = 0, 0, False
    while at < len(pattern):
        piece = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        at += len(piece)
        if in_class:
            in_class = piece != "]"
        elif piece == "[":
            in_class = True
            rest = re.match(r"\^?\]?", pattern[at:])
            piece += rest[0] if rest else ""
            at += len(piece) - 1
        elif piece == "(":
            name = re.match(r"\?P<\w+>", pattern[at:])
            if name or not pattern.startswith("?", at):
                group += 1
                at += len(name[0]) if name else 0
                piece = "(" if group == number else "(?:"
        out.append(piece)
    return out
