"""Slim schemas: smaller, and a result that fits the generated schema fits them as well."""

from __future__ import annotations

from typing import Annotated, Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from sam2_mcp_worker.tools.schemas import slim


class Inner(BaseModel):
    title: str
    default: int | None = None


class Outer(BaseModel):
    """A result."""

    properties: list[Inner]
    anyOf: Annotated[Inner | None, Field(description="an inner one")] = None
    either: int | str | None = None


def test_titles_and_nulls_go_and_names_that_look_like_them_stay() -> None:
    schema = slim(Outer.model_json_schema())
    assert schema["description"] == "A result."
    assert "title" not in schema
    assert set(schema["properties"]) == {"properties", "anyOf", "either"}
    assert schema["properties"]["anyOf"] == {"$ref": "#/$defs/Inner", "description": "an inner one"}
    assert schema["$defs"]["Inner"]["properties"] == {"title": {"type": "string"}, "default": {"type": "integer"}}
    assert len(schema["properties"]["either"]["anyOf"]) == 3


results = st.builds(
    Outer,
    properties=st.lists(st.builds(Inner, title=st.text(), default=st.none() | st.integers()), max_size=3),
    anyOf=st.none() | st.builds(Inner, title=st.text(), default=st.none()),
    either=st.none() | st.integers() | st.text(),
)


@given(results)
def test_every_result_as_it_is_sent_fits_the_slim_schema(result: Outer) -> None:
    sent: dict[str, Any] = result.model_dump(mode="json", exclude_none=True)
    jsonschema.validate(sent, slim(Outer.model_json_schema()))
