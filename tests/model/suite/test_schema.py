"""The JSON Schema that editors use says the same of a document as the loader does."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from seatrial.cli.about import FILES, shape_of
from seatrial.model.documents import Faults, decode, json_schema, parse

if TYPE_CHECKING:
    import jsonschema

SHAPES = {name: shape_of(name) for name in FILES if name != "references"}


@functools.cache  # it takes long, and every process of the tests collects this file
def schema_of(name: str) -> dict[str, Any]:
    return json_schema(SHAPES[name], name)


def validator(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    import jsonschema

    return jsonschema.Draft202012Validator(schema)


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of files that inherit nothing: what the loader decodes is always whole."""
    return {**schema, "anyOf": schema["anyOf"][:1]} if "anyOf" in schema else schema


def loads(shape: type[Struct], document: Any) -> list[str]:
    """What the loader says of the shape of a document, whatever its texts mean."""
    faults = Faults()
    # JSON is YAML, and quotes every text: each value comes to the loader as what it is.
    node = parse(json.dumps(document).encode(), Path("t"), faults)
    assert node is not None
    decode(node, shape, faults)
    return [text for text in faults.texts if text not in faults.of_values]


@functools.cache
def validator_of_whole(name: str) -> jsonschema.Draft202012Validator:
    return validator(whole(schema_of(name)))


def allows(name: str, document: Any) -> bool:
    valid: bool = validator_of_whole(name).is_valid(document)
    return valid


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, -0.5, 1.5, 1e20]),
    st.sampled_from(["", "x", "5", "any", "srun", "higher", "machine", "link", "median", "local"]),
)  # fmt: skip


def documents_of(schema: dict[str, Any], part: dict[str, Any], depth: int = 0) -> Any:
    """Documents that fit a part of the schema."""
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    if "anyOf" in part:
        return st.one_of([documents_of(schema, each, depth) for each in part["anyOf"]])
    if "enum" in part:
        return st.sampled_from(part["enum"])
    kind = part.get("type")
    if kind == "object" and "properties" in part:
        keys = {n: documents_of(schema, p, depth + 1) for n, p in part["properties"].items()}
        needed = {name: keys.pop(name) for name in part.get("required", [])}
        return st.fixed_dictionaries(needed, optional=keys)
    if kind == "object":
        inner = documents_of(schema, part["additionalProperties"], depth + 1)
        names = part.get("propertyNames", {}).get("enum", ["a", "b"])
        return st.dictionaries(st.sampled_from(names), inner, max_size=2)
    if kind == "array":
        return st.lists(documents_of(schema, part["items"], depth + 1), max_size=2)
    numbers = st.sampled_from([n for n in (-1, -0.5, 0, 0.5, 1, 2, 7.0, 2000) if _within(n, part)])
    return {
        "string": st.sampled_from(["", "x", "n[1-3]"]),
        "boolean": st.booleans(),
        "null": st.none(),
        "number": numbers,
        "integer": numbers.filter(lambda number: number == int(number)),
    }[str(kind)]


def _within(number: float, part: dict[str, Any]) -> bool:
    return bool(part.get("minimum", -9) <= number <= part.get("maximum", 9))


@functools.cache
def fitting(name: str) -> Any:
    return documents_of(schema_of(name), schema_of(name))


REPLACEMENTS: st.SearchStrategy[Any] = SCALARS | st.just([]) | st.just({}) | st.just([1, "a"])


@st.composite
def spoilt(draw: st.DrawFn, name: str) -> Any:
    """A document with, mostly, one value replaced, one key removed or one added."""
    document = draw(fitting(name))
    holder = document
    while draw(st.booleans()):
        inner = [v for v in (holder.values() if isinstance(holder, dict) else holder) if v]
        inner = [value for value in inner if isinstance(value, dict | list)]
        if not inner:
            break
        holder = draw(st.sampled_from(inner))
    change = draw(st.sampled_from(["none", "replace", "remove", "add"]))
    steps = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if change == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(["unknown", "tags", "name", "from", ""]))] = draw(SCALARS)
    elif change in ("replace", "remove") and steps:
        step = draw(st.sampled_from(steps))
        if change == "remove":
            del holder[step]
        else:
            holder[step] = draw(REPLACEMENTS)
    return document


@pytest.mark.parametrize("name", SHAPES)
def test_schema_and_loader_agree(name: str) -> None:
    seen = set()

    @settings(
        max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(spoilt(name))
    def agree(document: Any) -> None:
        document.pop("plugins", None)  # whether they are there is no matter of shape
        faults = loads(SHAPES[name], document)
        assert (not faults) == allows(name, document), (document, faults)
        seen.add(not faults)

    agree()
    assert seen == {True, False}


@pytest.mark.parametrize("number", [1, 1.0, 0, 0.5, -1, 1_000_000, 1_000_001, True, "1", None])
def test_bounds_of_numbers(number: Any) -> None:
    document = {"app": "a", "run": {"script": "x"}, "repeat": number}
    assert (not loads(SHAPES["test"], document)) == allows("test", document)


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"inherits": "parent"}, True),
        ({"inherits": "parent", "run": {"nodes": 2}, "metrics": {"m": {"unit": "s"}}}, True),
        ({"inherits": "parent", "run": {"nodes": [2]}}, False),
        ({"inherits": "parent", "runn": {}}, False),
        ({"run": {"script": "x"}}, False),
        ({"app": "a", "run": {"script": "x"}}, True),
    ],
)
def test_an_heir_need_not_have_what_it_takes_over(document: Any, valid: bool) -> None:
    assert validator(schema_of("test")).is_valid(document) == valid


def test_a_machine_that_includes_need_not_have_what_it_takes_over() -> None:
    schema = validator(schema_of("machine"))
    assert schema.is_valid({"machine": "m", "include": "parts/nodes.yaml"})
    assert schema.is_valid({"include": ["a.yaml", "b.yaml"], "launcher": {"flavour": "openmpi"}})
    assert not schema.is_valid({"machine": "m"})
    assert not schema.is_valid({"machine": "m", "include": {}})


def test_the_tests_that_ship_fit_the_schema() -> None:
    files = sorted((Path(__file__).parents[3] / "suites").rglob("test.yaml"))
    assert files
    schema = validator(schema_of("test"))
    for file in files:
        schema.validate(yaml.safe_load(file.read_text()))


def test_a_key_of_the_struct_that_is_not_of_the_file_is_in_neither() -> None:
    document = {"app": "a", "run": {"script": "x"}, "folder": "/"}
    assert not allows("test", document)
    assert loads(SHAPES["test"], document)
    assert "folder" not in schema_of("test")["$defs"]["TestFile"]["properties"]


def test_the_schema_is_itself_valid_and_tells_of_every_key() -> None:
    for name in SHAPES:
        schema = schema_of(name)
        validator(schema).check_schema(schema)
    assert set(schema_of("test")["$defs"]["TestFile"]["properties"]) == set(
        SHAPES["test"].__struct_encode_fields__
    )
