"""Writes docs/tools.md and docs/configuration.md from the code, so that they cannot disagree with it.

`python docs/generate.py --check` writes nothing and ends with 1 when a page is out of date.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.server import build_tool_server

DOCS = Path(__file__).parent
NOTE = "<!-- written by docs/generate.py: change the code, then run `make docs` -->\n\n"


def tools_page() -> str:
    """Every tool with its parameters, as an agent sees them."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kor.traineddata").touch()
        server = build_tool_server(Services(Settings(tessdata_dir=Path(folder), data_dir=Path(folder))))
        tools = asyncio.run(server.list_tools())
    intro = "Results are JSON: the same facts in the first text block and as structured content.\n"
    parts = [NOTE, "# Tools\n\n", intro]
    for tool in tools:
        parts.append(f"\n## {tool.name}\n\n{tool.description}\n\n")
        parts.append(_parameters(tool.input_schema))
    return "".join(parts)


def _parameters(schema: dict[str, Any]) -> str:
    rows = []
    for name, about in schema.get("properties", {}).items():
        kinds = about.get("anyOf", [about])
        real = [kind for kind in kinds if kind.get("type") != "null"]
        kind = " or ".join("/".join(map(str, each.get("enum", []))) or each.get("type", "") for each in real)
        default = "required" if name in schema.get("required", []) else str(about.get("default"))
        rows.append(f"| `{name}` | {kind} | {default} | {about.get('description', '')} |\n")
    if not rows:
        return "No parameters.\n"
    return "| parameter | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def configuration_page() -> str:
    """Every setting of the worker."""
    parts = [
        NOTE,
        "# Configuration of the worker\n\n",
        "Environment variables. The bridge's are in `sam2-mcp --help` and in the README.\n\n",
        "| variable | default | meaning |\n|---|---|---|\n",
    ]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=False)
        shown = "~/.cache/sam2-mcp" if name == "data_dir" else "" if default in (None, ()) else default
        shown = ",".join(shown) if isinstance(shown, tuple) else shown
        parts.append(f"| `SAM2_MCP_{name.upper()}` | {shown} | {field.description} |\n")
    return "".join(parts)


def main() -> int:
    """Write the pages, or check them."""
    stale = []
    for name, text in (("tools.md", tools_page()), ("configuration.md", configuration_page())):
        path = DOCS / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
