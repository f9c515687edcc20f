"""A model of the Flux that our dashboards are written in, as InfluxData documents it: Debian has no
InfluxDB 2 to ask.

    rows = evaluated('from(bucket: "b") |> range(start: 0, stop: time(v: 9)) |> ...', points)

What our queries do not use is an error. Columns that a row lacks are null, ``None``.
"""

from __future__ import annotations

import operator
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tests.plugins.sinks.protocol import Point

Row = dict[str, Any]
Environment = dict[str, Any]

_TOKEN = re.compile(
    r'\s+|(?P<text>"[^"]*")|(?P<regex>(?<=~ )/(?:\\.|[^/\\])*/)|(?P<duration>\d+ms)'
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\|>|=>|==|!=|>=|<=|=~|[-+=<>(){}\[\],:.])"
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
    "=~": lambda text, pattern: pattern.search(text) is not None,
}


class Table(NamedTuple):
    """Rows of one group, and the columns by which they are grouped."""

    key: frozenset[str]
    rows: list[Row]


Tables = list[Table]
Value = Callable[[Environment], Any]


def evaluated(query: str, points: Iterable[Point]) -> list[Row]:
    """The rows that a query gives of these points, table by table."""
    parser = _Parser(query)
    environment = _functions(list(points))
    result: Any = None
    for name, value in parser.statements():
        result = value(environment)
        if name:
            environment[name] = result
    return [row for table in result for row in table.rows]


# ---- the language -------------------------------------------------------------------------


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found, f"what is {text[at : at + 20]!r}"
            at = found.end()
            if found.lastgroup:
                self.tokens.append((found.lastgroup, found[0]))
        self.at = 0

    def statements(self) -> list[tuple[str, Value]]:
        found = []
        while self.at < len(self.tokens):
            name = ""
            if self._kind() == "name" and self._sign(1) == "=":
                name = self._take()
                self._take("=")
            found.append((name, self._expression()))
        return found

    def _kind(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""

    def _sign(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][1] if self.at + ahead < len(self.tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._sign()
        assert token and (not wanted or token == wanted), f"{wanted} wanted, not {token}"
        self.at += 1
        return token

    def _expression(self) -> Value:
        value = self._either()
        while self._sign() == "|>":
            self._take()
            value = self._postfix(piped=value)
        return value

    def _either(self) -> Value:
        if self._sign() == "if":
            self._take("if")
            test = self._expression()
            self._take("then")
            yes = self._expression()
            self._take("else")
            no = self._expression()
            return lambda env: yes(env) if test(env) else no(env)
        value = self._both()
        while self._sign() == "or":
            self._take()
            value = _joined(value, self._both(), any)
        return value

    def _both(self) -> Value:
        value = self._comparison()
        while self._sign() == "and":
            self._take()
            value = _joined(value, self._comparison(), all)
        return value

    def _comparison(self) -> Value:
        if self._sign() == "exists":
            self._take()
            there = self._postfix()
            return lambda env: there(env) is not None
        one = self._sum()
        if self._sign() not in _COMPARE:
            return one
        compare = _COMPARE[self._take()]
        other = self._sum()

        def compared(env: Environment) -> Any:
            values = one(env), other(env)
            return None if None in values else compare(*values)

        return compared

    def _sum(self) -> Value:
        value = self._postfix()
        while self._sign() == "+":
            self._take()
            value = _added(value, self._postfix())
        return value

    def _postfix(self, piped: Value | None = None) -> Value:
        value = self._primary()
        while self._sign() in ("(", "."):
            if self._take() == ".":
                value = _member(value, self._take())
            else:
                value = _call(value, self._arguments(")"), piped)
                if piped is not None:
                    return value
        return value

    def _arguments(self, end: str) -> dict[str, Value]:
        found = {}
        while self._sign() != end:
            name = self._take()
            self._take(":")
            found[name] = self._expression()
            if self._sign() == ",":
                self._take()
        self._take(end)
        return found

    def _primary(self) -> Value:
        kind, token = self._kind(), self._take()
        if kind == "text":
            return lambda _: token[1:-1]
        if kind == "regex":
            pattern = re.compile(token[1:-1])
            return lambda _: pattern
        if kind in ("number", "duration"):
            number = float(token) if "." in token else int(token.removesuffix("ms"))
            return lambda _: number
        if kind == "name":
            return lambda env: env[token]
        if token == "[":
            items: list[Value] = []
            while self._sign() != "]":
                items.append(self._expression())
                if self._sign() == ",":
                    self._take()
            self._take("]")
            return lambda env: [item(env) for item in items]
        if token == "{":
            members = self._arguments("}")
            return lambda env: {name: value(env) for name, value in members.items()}
        assert token == "(", token
        if self._is_function():
            return self._function()
        value = self._expression()
        self._take(")")
        return value

    def _is_function(self) -> bool:
        ahead = 0
        while self._kind(ahead) == "name" or self._sign(ahead) == ",":
            ahead += 1
        return self._sign(ahead) == ")" and self._sign(ahead + 1) == "=>"

    def _function(self) -> Value:
        names = []
        while self._sign() != ")":
            token = self._take()
            if token != ",":
                names.append(token)
        self._take(")")
        self._take("=>")
        body = self._expression()
        return lambda env: lambda **given: body({**env, **{name: given[name] for name in names}})


def _joined(one: Value, other: Value, join: Callable[[Iterable[Any]], bool]) -> Value:
    return lambda env: join(each(env) for each in (one, other))


def _added(one: Value, other: Value) -> Value:
    return lambda env: one(env) + other(env)


def _member(value: Value, name: str) -> Value:
    return lambda env: value(env).get(name)


def _call(function: Value, arguments: dict[str, Value], piped: Value | None) -> Value:
    def called(env: Environment) -> Any:
        given = {name: value(env) for name, value in arguments.items()}
        return function(env)(*([piped(env)] if piped else []), **given)

    return called


# ---- the functions ------------------------------------------------------------------------


def _functions(points: Sequence[Point]) -> Environment:
    def from_(bucket: str) -> Tables:
        series: dict[tuple[Any, ...], dict[int, Row]] = {}
        for point in points:
            for name, value in point.fields.items():
                row = {"_measurement": point.measurement, "_field": name, **dict(point.tags)}
                mine = series.setdefault(tuple(sorted(row.items())), {})
                mine[point.time] = {**row, "_time": point.time, "_value": value}
        return [
            Table(frozenset(rows[min(rows)]) - {"_time", "_value"}, [rows[t] for t in sorted(rows)])
            for rows in series.values()
        ]

    return {
        "from": from_,
        "range": _range,
        "filter": _filter,
        "pivot": _pivot,
        "group": _group,
        "sort": _sort,
        "map": _map,
        "reduce": _reduce,
        "keep": _keep,
        "drop": _drop,
        "rename": _rename,
        "limit": _limit,
        "top": _top,
        "union": _union,
        "last": _last,
        "min": _selected(min),
        "max": _selected(max),
        "sum": _aggregated(sum),
        "count": _aggregated(len),
        "mean": _aggregated(statistics.mean),
        "median": _aggregated(statistics.median),
        "aggregateWindow": _windows,
        "float": lambda v: float(v),
        "time": lambda v: v,
        "true": True,
        "false": False,
    }


def _range(tables: Tables, start: int, stop: int) -> Tables:
    bounds = {"_start": start, "_stop": stop}
    return _some(
        Table(
            table.key | set(bounds),
            [{**row, **bounds} for row in table.rows if start <= row["_time"] < stop],
        )
        for table in tables
    )


def _some(tables: Iterable[Table]) -> Tables:
    return [table for table in tables if table.rows]


def _filter(tables: Tables, fn: Callable[..., Any]) -> Tables:
    return _some(Table(table.key, [row for row in table.rows if fn(r=row)]) for table in tables)


def _grouped(rows: Iterable[Row], key: frozenset[str]) -> Tables:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(repr(row.get(name)) for name in sorted(key)), []).append(row)
    return [Table(key, mine) for mine in found.values()]


def _group(tables: Tables, columns: Sequence[str] = ()) -> Tables:
    # In which order rows of several tables follow each other is not defined: here the last first.
    return _grouped((row for table in reversed(tables) for row in table.rows), frozenset(columns))


def _pivot(
    tables: Tables, rowKey: Sequence[str], columnKey: Sequence[str], valueColumn: str
) -> Tables:
    (column,) = columnKey
    made: dict[tuple[Any, ...], tuple[frozenset[str], Row]] = {}
    for table in tables:
        key = table.key - {column, valueColumn}
        for row in table.rows:
            kept = {name: row.get(name) for name in [*sorted(key), *rowKey]}
            _, mine = made.setdefault(tuple(map(repr, kept.items())), (key, kept))
            mine[row[column]] = row.get(valueColumn)
    tables = []
    for key in dict.fromkeys(key for key, _ in made.values()):
        tables += _grouped((row for mine, row in made.values() if mine == key), key)
    return tables


def _sort(tables: Tables, columns: Sequence[str], desc: bool = False) -> Tables:
    def value(row: Row) -> list[Any]:
        return [row[name] for name in columns]

    return [Table(each.key, sorted(each.rows, key=value, reverse=desc)) for each in tables]


def _map(tables: Tables, fn: Callable[..., Row]) -> Tables:
    made = []
    for table in tables:
        rows = [fn(r=row) for row in table.rows]
        made += _grouped(rows, frozenset(table.key & set(rows[0])))
    return made


def _reduce(tables: Tables, identity: Row, fn: Callable[..., Row]) -> Tables:
    made = []
    for table in tables:
        total = identity
        for row in table.rows:
            total = fn(r=row, accumulator=total)
        made.append(Table(table.key, [_key_of(table) | total]))
    return made


def _key_of(table: Table) -> Row:
    return {name: table.rows[0].get(name) for name in table.key}


def _keep(tables: Tables, columns: Sequence[str]) -> Tables:
    return [
        Table(
            table.key & set(columns),
            [{name: row.get(name) for name in columns} for row in table.rows],
        )
        for table in tables
    ]


def _drop(tables: Tables, columns: Sequence[str]) -> Tables:
    return [
        Table(
            table.key - set(columns),
            [{name: row[name] for name in row if name not in columns} for row in table.rows],
        )
        for table in tables
    ]


def _rename(tables: Tables, columns: dict[str, str]) -> Tables:
    return [
        Table(
            frozenset(columns.get(name, name) for name in table.key),
            [{columns.get(name, name): row[name] for name in row} for row in table.rows],
        )
        for table in tables
    ]


def _limit(tables: Tables, n: int) -> Tables:
    return [Table(table.key, table.rows[:n]) for table in tables]


def _top(tables: Tables, n: int, columns: Sequence[str]) -> Tables:
    return _limit(_sort(tables, columns, desc=True), n)


def _union(tables: Sequence[Tables]) -> Tables:
    return [table for each in tables for table in each]


def _last(tables: Tables) -> Tables:
    return [Table(table.key, table.rows[-1:]) for table in tables]


def _selected(choose: Callable[..., Row]) -> Callable[[Tables], Tables]:
    def select(tables: Tables) -> Tables:
        return [
            Table(table.key, [choose(table.rows, key=lambda row: row["_value"])])
            for table in tables
        ]

    return select


def _aggregated(compute: Callable[[list[Any]], Any]) -> Callable[..., Tables]:
    def aggregate(tables: Tables, column: str = "_value") -> Tables:
        return [
            Table(table.key, [_key_of(table) | {column: compute(_values(table.rows, column))}])
            for table in tables
        ]

    return aggregate


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row.get(column) is not None]


def _windows(
    tables: Tables, every: int, fn: Callable[..., Tables], column: str, createEmpty: bool
) -> Tables:
    assert not createEmpty
    width = every * 1_000_000
    made = []
    for table in tables:
        rows = []
        for start in sorted({row["_time"] // width * width for row in table.rows}):
            inside = [row for row in table.rows if start <= row["_time"] < start + width]
            ((only,),) = (each.rows for each in fn([Table(table.key, inside)], column=column))
            rows.append(only | {"_time": start + width})
        made.append(Table(table.key, rows))
    return made
