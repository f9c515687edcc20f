"""Base 32 (RFC 4648) in small letters, for the ids of cases and runs."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]  # of 10 bits each


def base32(number: int, letters: int) -> str:
    """Return a whole number of 5 bits a letter; ``letters``, of which there are so many, is even.
    Two letters at a time take half as long as each by itself."""
    return "".join([_PAIRS[number >> bits & 1023] for bits in range(5 * letters - 10, -10, -10)])
