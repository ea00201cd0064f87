"""Arguments of tools that revision 2026-07-28 repeats in headers: annotation `x-mcp-header`, header `Mcp-Param-*`.

Owns which annotations are valid and how a value is written into a header
(2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters, #value-encoding). No I/O.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

ANNOTATION = "x-mcp-header"
_TYPES = ("string", "integer", "boolean")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 5.6.2
_VISIBLE = re.compile(r"(?![ ])[ -~]*(?<![ ])")
_SENTINEL = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")

# Keywords of JSON Schema 2020-12 with schemas in them, besides `properties`; what they hold is reached only sometimes,
# so an annotation there is invalid. `default`, `const`, `enum` and `examples` hold data, which may look like anything.
_ONE_SCHEMA = {"items", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"}
_ONE_SCHEMA |= {"propertyNames", "not", "if", "then", "else", "contentSchema"}
_LIST_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAP_OF_SCHEMAS = ("patternProperties", "dependentSchemas", "$defs", "definitions")

Path = tuple[str, ...]


class InvalidAnnotation(ValueError):
    """A tool with such an annotation must not be offered."""


class ParamHeaders:
    """What the tools lists that passed by said about each tool."""

    def __init__(self) -> None:
        self._paths_of: dict[str, dict[str, Path]] = {}  # tool -> header -> path of the argument

    def learned(self, page: dict[str, Any]) -> dict[str, Any]:
        """Remember the annotations of a page of tools/list; the page without the tools that are not valid."""
        tools = page.get("tools")
        valid = [tool for tool in tools if self._learn(tool)] if isinstance(tools, list) else tools
        return page if valid == tools else page | {"tools": valid}

    def _learn(self, tool: Any) -> bool:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            return True
        self._paths_of.pop(name, None)
        try:
            paths = annotated(tool.get("inputSchema"))
        except InvalidAnnotation:
            return False
        if paths:
            self._paths_of[name] = paths
        return True

    def of(self, tool: Any, arguments: Any) -> dict[str, str]:
        """The headers of a call."""
        paths = self._paths_of.get(tool, {}) if isinstance(tool, str) else {}
        texts = ((header, _text(_at(arguments, path))) for header, path in paths.items())
        return {f"Mcp-Param-{header}": header_value(text) for header, text in texts if text is not None}


def annotated(schema: Any) -> dict[str, Path]:
    """The header of each annotated property and the path that leads to it.

    Raises:
        InvalidAnnotation: an annotation is not where, what or on what it may be.
    """
    paths: dict[str, Path] = {}
    for path, node in _schemas(schema):
        if ANNOTATION in node:
            header = node[ANNOTATION]
            if not path or not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise InvalidAnnotation(f"{path}: {ANNOTATION} must be a token, on a property")
            if node.get("type") not in _TYPES:
                raise InvalidAnnotation(f"{path}: {ANNOTATION} needs one of the types {_TYPES}")
            if header.lower() in map(str.lower, paths):
                raise InvalidAnnotation(f"{path}: {ANNOTATION} {header} is there twice")
            paths[header] = path
    return paths


def _schemas(root: Any) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Every schema in a schema, with its path, None where it is not reached by properties alone."""
    waiting: list[tuple[Path | None, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            yield path, node
            for keyword, value in node.items():
                waiting += _below(path, keyword, value)


def _below(path: Path | None, keyword: str, value: Any) -> list[tuple[Path | None, Any]]:
    if keyword == "properties" and isinstance(value, dict):
        return [(None if path is None else (*path, name), schema) for name, schema in value.items()]
    if keyword in _ONE_SCHEMA:
        return [(None, value)]
    if keyword in _LIST_OF_SCHEMAS and isinstance(value, list):
        return [(None, schema) for schema in value]
    if keyword in _MAP_OF_SCHEMAS and isinstance(value, dict):
        return [(None, schema) for schema in value.values()]
    return []


def _at(arguments: Any, path: Path) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def header_value(text: str) -> str:
    """`text` where it passes through HTTP unchanged, else its Base64 between sentinels."""
    if _VISIBLE.fullmatch(text) and not _SENTINEL.fullmatch(text):
        return text
    text = _SURROGATE.sub("\ufffd", text)  # as in the body
    return f"=?base64?{b64encode(text.encode()).decode()}?="
