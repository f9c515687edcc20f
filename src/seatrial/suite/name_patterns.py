"""Patterns of names, such as ``io_*``."""

from fnmatch import fnmatchcase


def is_pattern(text: str) -> bool:
    """Return True if a text holds a wildcard of the shell: ``*``, ``?`` or ``[``."""
    return any(sign in text for sign in "*?[")


def is_like(name: str, pattern: str) -> bool:
    """Return True if a name matches a pattern such as ``io_*``, or contains a text without a
    wildcard."""
    return fnmatchcase(name, pattern) if is_pattern(pattern) else pattern in name
