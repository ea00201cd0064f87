"""The MCP Inspector's command line as one more host, of either era, for both programs as they are shipped.

The worker is the real one with real tools and files, reached over HTTP; the bridge is started by the Inspector in
front of it, in both profiles.
"""

import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from tests.conformance.checks import Row
from tests.conformance.child import run_to_end
from tests.conformance.toolchain import INSPECTOR, NODE
from tests.e2e.rehearsal.processes import Program, free_port, running
from tests.fakes.documents import document, good_page

CALL_LIMIT_S = 90.0
LOAD_CALLS = 40
LOAD_CONCURRENCY = 8
DIGITS = "48151623"

# Profile station speaks to one host, which begins with a handshake: there is no modern era for it.
COLUMNS = (
    ("worker over HTTP", "legacy"),
    ("worker over HTTP", "modern"),
    ("bridge, profile full", "legacy"),
    ("bridge, profile full", "modern"),
    ("bridge, profile station", "legacy"),
)


@dataclass(frozen=True)
class Errand:
    """One thing that the Inspector is asked to do: its name in the table, its arguments, a word of the outcome."""

    name: str
    arguments: tuple[str, ...]
    expected: str


def call(tool: str, **arguments: Any) -> Errand:
    words = {"get_status": "queues", "read_text": DIGITS, "inspect_pdf": "second page"}
    parts = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return Errand(f"`tools/call {tool}`", parts, words[tool])


LOAD = ("--load", "--load-requests", str(LOAD_CALLS), "--load-concurrency", str(LOAD_CONCURRENCY))
ERRANDS = (
    Errand("`tools/list --strict`", ("--method", "tools/list", "--strict"), "inspect_pdf"),
    call("get_status"),
    call("read_text", source="digits.png"),
    call("inspect_pdf", source="two.pdf"),
    Errand(
        f"`--load` of {LOAD_CALLS} calls, {LOAD_CONCURRENCY} at once",
        ("--method", "tools/call", "--tool-name", "get_status", *LOAD),
        f'"ok":{LOAD_CALLS}',
    ),
)


async def run_inspector() -> tuple[dict[tuple[str, str, str], Row], list[str]]:
    """Every errand in every column: rows by (errand, target, era), and what went wrong."""
    rows: dict[tuple[str, str, str], Row] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="inspector-") as name:
        async with _worker(Path(name)) as url:
            for target, era in COLUMNS:
                for errand in ERRANDS:
                    wrong = await _run(errand, _target(target, url), era, Path(name))
                    rows[errand.name, target, era] = Row("FAIL" if wrong else "pass", passed_checks=1)
                    problems += [f"Inspector, {target}, {era}, {errand.name}: {wrong}"] if wrong else []
    return rows, problems


async def _run(errand: Errand, target: list[str], era: str, home: Path) -> str:
    """Empty when the Inspector was content and its output says what it must."""
    arguments = ["--cli", *target, "--protocol-era", era, *errand.arguments, "-q", "--format", "json"]
    # It keeps a folder of settings in the home folder.
    try:
        ended = await run_to_end([str(NODE), str(INSPECTOR), *arguments], CALL_LIMIT_S, HOME=str(home))
    except TimeoutError as error:
        return str(error)
    if ended.code != 0:
        return f"exit code {ended.code}: {(ended.stderr or ended.stdout)[-600:]}"
    return "" if errand.expected in ended.stdout else f"{errand.expected!r} is not in {ended.stdout[:600]}"


def _target(name: str, url: str) -> list[str]:
    if name.startswith("worker"):
        return [url, "--transport", "http"]
    profile = name.rpartition(" ")[2]
    return [
        sys.executable,
        "-u",
        "-m",
        "sam2_mcp_bridge",
        "-e",
        f"SAM2_MCP_URL={url}",
        "-e",
        f"SAM2_MCP_PROFILE={profile}",
    ]


@asynccontextmanager
async def _worker(folder: Path) -> AsyncIterator[str]:
    roots = folder / "files"
    roots.mkdir()
    (roots / "two.pdf").write_bytes(document([good_page("first page"), good_page("second page")]))
    picture = Image.new("RGB", (420, 120), "white")
    ImageDraw.Draw(picture).text((40, 30), DIGITS, font=ImageFont.load_default(size=40), fill="black")
    picture.save(roots / "digits.png")
    port = free_port()
    command = [sys.executable, "-m", "sam2_mcp_worker", "serve", "--port", str(port)]
    settings = {"SAM2_MCP_DATA_DIR": str(folder / "data"), "SAM2_MCP_ALLOWED_ROOTS": str(roots)}
    async with running(Program(command, port, folder / "worker.log", settings)):
        yield f"http://127.0.0.1:{port}/mcp"
