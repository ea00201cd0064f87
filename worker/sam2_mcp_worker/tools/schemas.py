"""Takes out of generated JSON schemas what tells a client nothing, so that the list of tools stays small. Pure.

Pydantic repeats every name as a title, and lets optional fields be null with null as their default; results leave
fields without a value out (reply.py), so that null never comes.
"""

from __future__ import annotations

import json
from typing import Any

NULL = {"type": "null"}
# Below these, keys are names of ours and not words of JSON Schema.
_NAMED = ("properties", "$defs")


def slim(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without generated titles, null defaults and null alternatives; it accepts no less of what is sent."""
    kept = {key: value for key, value in schema.items() if not _says_nothing(key, value)}
    alternatives = kept.get("anyOf")
    if isinstance(alternatives, list) and len(alternatives) == 2 and NULL in alternatives:
        del kept["anyOf"]
        kept = {**next(item for item in alternatives if item != NULL), **kept}
    return {key: _slim_part(key, value) for key, value in kept.items()}


def outline(schema: dict[str, Any]) -> dict[str, Any]:
    """The shape of a result: names, types and what is always there, without prose and what lists of numbers hold.

    Models are not shown the schemas of results, and every client holds them all the time: what a field means stands in
    the tool's description and in docs/tools.md. It accepts no less than the slim schema.
    """
    return {
        key: _each(key, value, outline)
        for key, value in slim(schema).items()
        if key not in ("description", "default", "additionalProperties") and not _plain_items(key, value)
    }


def _plain_items(key: str, value: Any) -> bool:
    return key == "items" and "$ref" not in json.dumps(value) and "properties" not in value


def _says_nothing(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)


def _slim_part(key: str, value: Any) -> Any:
    return value if key == "default" else _each(key, value, slim)


def _each(key: str, value: Any, change: Any) -> Any:
    """`change` applied to the schemas that are the value of this key."""
    if key in _NAMED and isinstance(value, dict):
        return {name: change(part) if isinstance(part, dict) else part for name, part in value.items()}
    if isinstance(value, dict):
        return change(value)
    if isinstance(value, list) and key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [change(part) if isinstance(part, dict) else part for part in value]
    return value
