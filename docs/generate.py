"""Writes docs/tools.md and docs/configuration.md from the code, so that they cannot disagree with it.

`python docs/generate.py --check` writes nothing and ends with 1 when a page is out of date.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from sam2_mcp_bridge import config as bridge
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.schemas import slim
from sam2_mcp_worker.tools.server import build_tool_server

DOCS = Path(__file__).parent
NOTE = "<!-- written by docs/generate.py: change the code, then run `make docs` -->\n\n"

WORKER_INTRO = "## Worker\n\nEnvironment variables.\n\n"
BRIDGE_INTRO = """
## Bridge

A flag beats its variable; a variable that is set to nothing is not set. A file may be named with `~`. A setting
that cannot be used ends the bridge before it serves anyone, with the reason on stderr: exit code 2 for a wrong
value, 3 for a file that cannot be used.

"""
BRIDGE_NOTES = """
`sam2-mcp --check [URL] [--json]` tries the connection with these settings, stage by stage: settings, name, tcp,
tls, http, eras, initialize, tools, status, image. It stops at the first stage that fails and says what to do; exit
code 0 when none failed, 1 when one did, 2 for wrong usage. With `--json` it prints one object, `{"ok",
"failed_stage", "stages": [{"stage", "state", "detail", "mend", "ms"}]}`, where `state` is `ok`, `failed`, `skipped`
or `not_reached`. It uploads one picture of 160 x 48 px, which the worker forgets after its retention time.

- **Token.** When the server answers 401, the token's file is read again, and the call is repeated once if another
  token is in it.
- **CA file.** Replaces the public CAs of certifi. May hold several certificates, or the server's own; in a folder
  every file with a certificate in PEM format counts.
- **Header file.** UTF-8, a line for each header; lines that begin with `#` and blank ones are left out. Headers
  that HTTP or the bridge itself sets cannot be in it, an `Authorization` header only without a token. Nothing of it
  is ever logged.
- **Proxy.** `http://user:password@proxy:3128`. Over https it sees the host's name only; over plain http it sees the
  whole call and the token. On Windows and macOS `SAM2_MCP_PROXY_FROM_ENV` also means the system's settings.
- **Redirects** are followed once and only within the same origin, so that neither token nor headers go anywhere
  else.
- **Shared folders.** In the variable they stand with the system's separator of paths between them (`:`, on Windows
  `;`). Every regular file below such a folder may be sent, hidden ones too, to the worker only and only when an
  argument of a tool names it: share a folder made for that, not a home folder.
  - Replaced is a text that as a whole is an absolute path, or a `file://` URL of this machine, that lies in a shared
    folder, at any depth of the arguments. Relative paths, `~/...` and paths within a longer text stay as they are.
  - A text that lies in a shared folder by its letters and cannot be sent ends the call with `[file_refused]` and is
    not passed on: a name that does not exist, a folder, an empty file, a link that leads out of the shared folders.
    A sentence that begins with such a path counts as one, so let sentences begin otherwise.
  - `..` is taken out before anything is looked at. Links within the shared folders are followed; mounted folders and
    hard links count as what they are, files in the folder.
  - The host is told the folders' names in the server's instructions, for its agent.
  - The worker learns the content and the last part of the name, no folder. The answer's `_meta` has
    `sam2-mcp/uploads`: for each replaced argument its JSON pointer, the name, the handle, the SHA-256, the size and
    whether it had to be sent; what the worker has costs one HEAD. All within the deadline of the call:
    an upload that does not fit begins anew with the next call, so send very large files before, to `POST /files`.
  - It needs a sam2-mcp worker, whose `/files` lies beside the endpoint; another server gets the
    first half of the hash and no byte, and the call ends with `[no_files]`.
"""


def tools_page() -> str:
    """Every tool with its parameters, as an agent sees them."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kor.traineddata").touch()
        server = build_tool_server(Services(Settings(tessdata_dir=Path(folder), data_dir=Path(folder))))
        tools = asyncio.run(server.list_tools())
        results = {tool.name: _result_schema(tool) for tool in server._tool_manager.list_tools()}
    intro = (
        "Results are JSON in the first text block, and the same as structured content unless a picture or sound is "
        "beside it ([pictures.md](pictures.md)).\n"
    )
    parts = [NOTE, "# Tools\n\n", intro]
    for tool in tools:
        parts.append(f"\n## {tool.name}\n\n{tool.description}\n\n")
        parts.append(_parameters(tool.input_schema))
        parts.append("\n| result | type | meaning |\n|---|---|---|\n")
        parts += _fields(slim(results[tool.name]))
    return "".join(parts)


def _parameters(schema: dict[str, Any]) -> str:
    rows = []
    for name, about in schema.get("properties", {}).items():
        kinds = about.get("anyOf", [about])
        real = [kind for kind in kinds if kind.get("type") != "null"]
        kind = " or ".join("/".join(map(str, each.get("enum", []))) or each.get("type", "") for each in real)
        default = "required" if name in schema.get("required", []) else str(about.get("default", ""))
        rows.append(f"| `{name}` | {kind} | {default} | {about.get('description', '')} |\n")
    if not rows:
        return "No parameters.\n"
    return "| parameter | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _result_schema(tool: Any) -> dict[str, Any]:
    schema: dict[str, Any] = tool.fn_metadata.output_model.model_json_schema()
    return schema


def _fields(schema: dict[str, Any], at: str = "", defs: dict[str, Any] | None = None) -> list[str]:
    """A row for each field of a result; `[]` stands for each of a list, `?` for what may be absent."""
    defs = schema.get("$defs", {}) if defs is None else defs
    rows = []
    for name, about in schema.get("properties", {}).items():
        inner, path = about, at + name
        while inner.get("type") == "array" and "items" in inner:
            inner, path = inner["items"], path + "[]"
        below = defs.get(inner.get("$ref", "").rpartition("/")[2], {})
        kind = "/".join(inner.get("enum", [])) or inner.get("type") or ("object" if below else "number")
        absent = "" if name in schema.get("required", []) else "?"
        meaning = about.get("description") or below.get("description", "")
        rows.append(f"| `{path}`{absent} | {kind} | {meaning} |\n")
        rows += _fields(below, f"{path}.", defs)
    return rows


def configuration_page() -> str:
    """Every setting of the worker and of the bridge."""
    parts = [NOTE, "# Configuration\n\n", WORKER_INTRO, "| variable | default | meaning |\n|---|---|---|\n"]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=False)
        shown = "~/.cache/sam2-mcp" if name == "data_dir" else "" if default in (None, ()) else default
        shown = ",".join(map(str, shown)) if isinstance(shown, tuple) else shown
        parts.append(f"| `{_variable(name, field)}` | {shown} | {field.description} |\n")
    parts += [BRIDGE_INTRO, "| variable | flag | default | meaning |\n|---|---|---|---|\n"]
    for name, setting in bridge.SETTINGS.items():
        meaning = setting.help[0].upper() + setting.help[1:]
        parts.append(f"| `{setting.variable}` | `{setting.flag}` | {bridge.default_text(name)} | {meaning}. |\n")
    parts.append(BRIDGE_NOTES)
    return "".join(parts)


def _variable(name: str, field: FieldInfo) -> str:
    """The environment variable of a setting: its own, or the one that a provider's tools share."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"SAM2_MCP_{name.upper()}"


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
