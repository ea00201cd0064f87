"""Which JSON schemas structured output takes: a subset, without limits on numbers, lengths and counts."""

from __future__ import annotations

from typing import Any

_ALWAYS = {"type", "description", "title", "default", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions"}
_OF_TYPE = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems"},
    "string": {"format"},
    "number": set[str](),
    "integer": set[str](),
    "boolean": set[str](),
    "null": set[str](),
}
_STRING_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}


def schema_fault(schema: Any) -> str:
    """What is wrong with it, empty when nothing is."""
    if not isinstance(schema, dict):
        return "schemas must be objects"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if fault := _own_fault(schema, kinds):
        return fault
    children = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    children += [*schema.get("definitions", {}).values(), *schema.get("anyOf", []), *schema.get("allOf", [])]
    children += [schema["items"]] if "items" in schema else []
    return next((fault for fault in map(schema_fault, children) if fault), "")


def _own_fault(schema: dict[str, Any], kinds: list[str]) -> str:
    if unknown := [kind for kind in kinds if kind not in _OF_TYPE]:
        return f"unknown type '{unknown[0]}'"
    allowed = _ALWAYS.union(*(_OF_TYPE[kind] for kind in kinds))
    if extra := sorted(set(schema) - allowed):
        return f"For '{kinds[0] if kinds else 'any'}' type, property '{extra[0]}' is not supported"
    if "object" in kinds and schema.get("additionalProperties") is not False:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    if missing := set(schema.get("required", [])) - set(schema.get("properties", {})):
        return f"required property '{min(missing)}' is not among the properties"
    if schema.get("minItems", 0) not in (0, 1):
        return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    if "format" in schema and schema["format"] not in _STRING_FORMATS:
        return f"format '{schema['format']}' is not supported"
    if "enum" in schema and (not schema["enum"] or any(isinstance(value, dict | list) for value in schema["enum"])):
        return "'enum' must be a list of strings, numbers, booleans or nulls"
    return ""
