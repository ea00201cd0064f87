"""Small drawings by which hosts tell tools and resources apart: SVG in data: URIs, so that nothing is fetched.

24 x 24, one path each, in a middle grey that stands out from light and dark alike. The server itself has none.
"""

from __future__ import annotations

from urllib.parse import quote

from mcp_types import Icon

_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'>"
    "<path d='{path}' fill='none' stroke='gray' stroke-width='2'/></svg>"
)

# Name -> path: a dial, lines of text, an eye, a cut-out, a track, a page, a covered box, a picture, a wave.
_PATHS = {
    "get_status": "M4 18a9 9 0 1 1 16 0M12 15l4-6",
    "read_text": "M4 6h16M4 12h16M4 18h9",
    "inspect_image": "M3 12q9-13 18 0q-9 13-18 0M9 12a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    "segment_image": "M5 5h4M13 5h6v5M19 14v5h-5M10 19H5v-5M5 10V5",
    "track_video": "M3 18l6-6 4 4 7-9M15 7h5v5",
    "inspect_pdf": "M6 3h8l4 4v14H6zM9 12h6M9 16h6",
    "inspect_video": "M3 4h18v16H3zM7 4v16M3 12h4M11 9l6 3-6 3z",
    "transcribe_audio": "M4 10v4M8 7v10M12 4v9M16 8v6M4 20h16",
    "check_phrases": "M4 6h9M4 12h6M4 18h6M13 15l3 3 6-8",
    "check_figures": "M8 4L6 20M16 4l-2 16M4 9h16M3 15h16",
    "redact_media": "M4 5h16M4 10h16v4H4zM4 12h16M4 19h9",
    "text": "M6 3h8l4 4v14H6zM9 12h6",
    "image": "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4",
    "audio": "M4 10v4M8 6v12M12 3v18M16 7v10M20 10v4",
    "video": "M4 6h16v12H4zM10 9l5 3-5 3z",
}
_OTHER = "text"


def _icon(name: str) -> list[Icon]:
    drawing = quote(_SVG.format(path=_PATHS[name]), safe="='/:,()")
    # The type stands in the address, and a drawing has any size: every byte of tools/list is read by somebody's model.
    return [Icon(src=f"data:image/svg+xml,{drawing}")]


_ICONS = {name: _icon(name) for name in _PATHS}


def icons_of_tool(name: str) -> list[Icon] | None:
    """The icon of a tool, in a list, as MCP wants it."""
    return _ICONS.get(name)


def icons_of_type(mime_type: str) -> list[Icon]:
    """The icon of a kind of file."""
    return _ICONS.get(mime_type.partition("/")[0], _ICONS[_OTHER])
