"""Check the expressions of a decoded test, and texts with expressions in braces."""

from seatrial.documents import Spot
from seatrial.errors import suggest
from seatrial.suite.expressions import FACTS, Expression, ExpressionError, compile_expression
from seatrial.suite.job_options import Text
from seatrial.suite.model import Test


class ExpressionChecker:
    """Adds the faults of a test at ``spot``. ``names_known`` is False if the parameters could not
    be read; undefined names are then not reported. ``known``: the names of parameters and facts."""

    def __init__(self, test: Test, spot: Spot, names_known: bool) -> None:
        self.test = test
        self.spot = spot
        self.fault = spot.fault
        self.names_known = names_known
        self.known = {*FACTS, *test.parameter_names}

    def told(self, fault: str, *key: str | int) -> None:
        """Add a fault, unless it is empty."""
        if fault:
            self.fault(fault, *key)

    def expression(self, text: str, known: set[str], *key: str | int) -> frozenset[str]:
        """Check an expression; return the names that it uses."""
        try:
            names = compile_expression(text).names
        except ExpressionError as error:
            self.fault(str(error), *key)
            return frozenset()
        for name in sorted(names - known if self.names_known else ()):
            self.fault(f"{text!r}: {name} is not defined{self._remedy(name, key[0])}", *key)
        return names

    def _remedy(self, name: str, key: str | int) -> str:
        known = [*self.test.parameter_names, *FACTS]
        if name in known:
            return "; it is written further down, and must stand above"
        if near := suggest(name, known):
            return f"; {near}"
        words = f"for a word write [{name}]; " if key == "parameters" else ""
        return f"; {words}the facts are {', '.join(FACTS)}"

    def text(self, written: str, known: set[str], *key: str | int) -> str | None:
        """Check a text with expressions in braces; return it where it has none."""
        try:
            parsed = Text.of(written)
        except ExpressionError as error:
            self.fault(str(error), *key)
            return None
        for each in parsed.parts:
            if isinstance(each, Expression):
                self.expression(each.text, known, *key)
        return parsed.fixed
