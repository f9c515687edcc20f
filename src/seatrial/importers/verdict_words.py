"""The words by which other tools say how a run ended."""

from seatrial.journal import codes

_WORDS: dict[codes.Code, tuple[str, ...]] = {
    codes.PASS: ("pass", "passed", "ok", "success", "succeeded", "good", "true", "done", "0"),
    codes.FAILED: ("fail", "failed", "failure", "error", "bad", "false", "aborted", "1"),
    codes.WRONG_ANSWER: ("wrong", "sanity", "incorrect", "2"),
    codes.PERFORMANCE: ("perf", "slow", "5"),
    codes.NODE_FAILURE: ("node_fail", "node fail", "9"),
    codes.CANCELLED: ("canceled", "cancelled", "21"),
    codes.TIMEOUT: ("timeout", "timed out", "timedout", "time limit", "23"),
    codes.OUT_OF_MEMORY: ("oom", "out_of_memory"),
}
_CODES = {word: code for code, words in _WORDS.items() for word in words} | {
    code.name: code for code in codes.CODES.values()
}


def code_of_word(text: str) -> codes.Code | None:
    """Return the verdict that a word stands for, in any case of letters: a name of a verdict, a
    number of the OLCF Test Harness, or a usual word. None for another one."""
    return _CODES.get(text.strip().lower())
