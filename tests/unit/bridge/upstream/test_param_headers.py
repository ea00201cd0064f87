"""x-mcp-header by itself; the official SDK, which real servers use, is the judge of what is right."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared import inbound

from sam2_mcp_bridge.upstream.param_headers import InvalidAnnotation, ParamHeaders, annotated, header_value

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(texts | texts.map(lambda text: f"=?base64?{text}?="))
@example(" 서울 ")
@example(" edge")
@example("edge ")
@example("tab\tinside")
@example("line\r\nInjected: yes")
@example("=?base64?x?=")
@example("=?base64?\n?=")
@example("")
@example("plain text, with spaces inside")
def test_a_value_arrives_as_it_was_and_is_a_valid_header(text: str) -> None:
    value = header_value(text)
    assert inbound.decode_header_value(value) == text
    assert value.isascii() and (value.isprintable() or not value) and value == value.strip()
    assert value == inbound.encode_header_value(text)


def test_a_lone_surrogate_is_replaced_as_it_is_in_the_body() -> None:
    assert inbound.decode_header_value(header_value("a\ud800b")) == "a\ufffdb"


KEYWORDS_WITH_SCHEMA = ["items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames"]
annotations = st.sampled_from(["Region", "region", "Other", "bad name", "", 7, "x-y"])
leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "object", ["string"], None]),
        "x-mcp-header": annotations,
        "default": st.just({"x-mcp-header": "data"}),
    },
)
names = st.sampled_from(["a", "b", "properties", "items"])


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    maps = st.dictionaries(names, inner, max_size=2)
    return st.one_of(
        st.builds(lambda leaf, properties: leaf | {"properties": properties}, leaves, maps),
        st.builds(lambda keyword, schema: {keyword: schema}, st.sampled_from(KEYWORDS_WITH_SCHEMA), inner),
        st.builds(
            lambda keyword, all_of: {keyword: all_of},
            st.sampled_from(["allOf", "oneOf", "prefixItems"]),
            st.lists(inner, max_size=2),
        ),
        st.builds(lambda keyword, schemas: {keyword: schemas}, st.sampled_from(["$defs", "patternProperties"]), maps),
        st.sampled_from(
            [True, None, [], "text", {"allOf": {}}, {"$defs": []}, {"properties": []}, {"const": {"x-mcp-header": 1}}]
        ),
    )


@given(st.recursive(leaves, _wider, max_leaves=8))
@example({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}})
@example({"properties": {"a": {"properties": {"b": {"type": "boolean", "x-mcp-header": "Deep"}}}}})
@example({"x-mcp-header": "Root", "type": "string"})
def test_the_same_schemas_are_valid_as_for_the_sdk(schema: Any) -> None:
    reason = inbound.find_invalid_x_mcp_header(schema)
    if reason is not None:
        with pytest.raises(InvalidAnnotation):
            annotated(schema)
    else:
        expected = {token: path for path, token in inbound.x_mcp_header_map(schema).items()}
        assert annotated(schema) == expected


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "x-mcp-header": "City"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "fast": {"type": "boolean", "x-mcp-header": "Fast"},
        "where": {"type": "object", "properties": {"street": {"type": "string", "x-mcp-header": "Street"}}},
        "plain": {"type": "string"},
    },
}
scalars = st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False, allow_infinity=False)
arguments = st.dictionaries(
    st.sampled_from(["city", "count", "fast", "where", "plain"]),
    scalars | st.dictionaries(st.just("street"), scalars) | st.lists(scalars, max_size=1),
)


@given(arguments)
@example({"city": None})
@example({"count": 42.0})
def test_the_sdk_accepts_the_headers_of_whatever_arguments(given_arguments: dict[str, Any]) -> None:
    headers = ParamHeaders()
    headers.learned({"tools": [{"name": "t", "inputSchema": SCHEMA}]})
    sent = {name.lower(): value for name, value in headers.of("t", given_arguments).items()}
    assert inbound.validate_mcp_param_headers(SCHEMA, given_arguments, sent) is None


def test_absent_and_null_arguments_have_no_header() -> None:
    headers = ParamHeaders()
    headers.learned({"tools": [{"name": "t", "inputSchema": SCHEMA}]})
    given_arguments = {"city": "부산", "count": None, "fast": False, "where": {"street": 3}}
    assert headers.of("t", given_arguments) == {
        "Mcp-Param-City": header_value("부산"),
        "Mcp-Param-Fast": "false",
        "Mcp-Param-Street": "3",
    }
    assert headers.of("t", None) == headers.of("other", {"city": "x"}) == headers.of(7, {}) == {}


def test_a_tool_with_an_invalid_annotation_is_hidden_and_the_rest_passes_untouched() -> None:
    good = {"name": "good", "inputSchema": SCHEMA, "x": 1}
    bad = {"name": "bad", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}}
    headers = ParamHeaders()
    assert headers.learned({"tools": [good, bad, "odd", {}], "nextCursor": "2"}) == {
        "tools": [good, "odd", {}],
        "nextCursor": "2",
    }
    untouched = {"tools": [good]}
    assert headers.learned(untouched) is untouched
    assert headers.learned({"tools": None}) == {"tools": None}


def test_a_newer_list_replaces_what_an_older_one_said() -> None:
    headers = ParamHeaders()
    headers.learned({"tools": [{"name": "t", "inputSchema": SCHEMA}]})
    headers.learned({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
    assert headers.of("t", {"city": "x"}) == {}
