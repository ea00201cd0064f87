"""Takes out of generated JSON schemas what tells a client nothing, so that the list of tools stays small. Pure.

Pydantic repeats every name as a title, and lets optional fields be null with null as their default.
"""

from __future__ import annotations

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


def _says_nothing(key: str, value: Any) -> bool:
    # That an optional text or list is empty when it is left out is what anybody expects.
    return (key == "title" and isinstance(value, str)) or (key == "default" and value in (None, "", []))


def _undescribed(definition: Any) -> Any:
    """What a model is for is told by the parameter that takes it."""
    if not isinstance(definition, dict):
        return definition
    return {key: value for key, value in definition.items() if key != "description" or not isinstance(value, str)}


def _slim_part(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, dict):
        parts = {name: slim(part) if isinstance(part, dict) else part for name, part in value.items()}
        return {name: _undescribed(part) for name, part in parts.items()} if key == "$defs" else parts
    if isinstance(value, dict) and key != "default":
        return slim(value)
    if isinstance(value, list) and key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [slim(part) if isinstance(part, dict) else part for part in value]
    return value
