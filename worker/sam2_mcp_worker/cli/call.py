"""`call`: one tool call from the command line, with uploads, progress and the cursor followed on request."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, ResourceLink

from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.cli.logs import set_up_logging
from sam2_mcp_worker.cli.server import running_worker
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.usage import USAGE_KEY

# Nothing comes of a call to these before the network is loaded.
NETWORK_TOOLS = ("segment_image", "track_video")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "call", help='call a tool: call inspect_pdf \'{"source": "{file0}"}\' --file leaflet.pdf'
    )
    parser.add_argument("tool", help="name of the tool")
    parser.add_argument(
        "arguments", nargs="?", default="{}", help="its arguments as JSON; {file0} stands for the first --file"
    )
    parser.add_argument("--file", action="append", type=Path, default=[], help="upload this file; may be repeated")
    parser.add_argument("--url", help="a worker that runs already; without it one is started for this call")
    parser.add_argument("--save", type=Path, metavar="DIR", help="fetch what the result points to (pictures, files)")
    parser.add_argument("--all", action="store_true", help="follow the cursor to the end")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the result on stdout; 1 when the tool reported an error."""
    try:
        payload = json.loads(arguments.arguments)
    except ValueError as error:
        raise WorkerError("arguments_not_json", str(error), next_step="quote the JSON for your shell") from error
    if not isinstance(payload, dict):
        raise WorkerError(
            "arguments_not_json", "the arguments are no JSON object", next_step='give e.g. \'{"source": "{file0}"}\''
        )
    return asyncio.run(_run(arguments, payload))


@asynccontextmanager
async def worker_at(
    url: str | None, *, network: bool = False, data_dir: Path | None = None
) -> AsyncIterator[WorkerClient]:
    """The worker at `url`, or one of our own for the length of the block; `network`: see `running_worker`.

    One of our own keeps its files in `data_dir`, or in the configured folder.
    """
    settings = Settings()
    if url is not None:
        yield WorkerClient(url, settings.read_token())
        return
    set_up_logging("WARNING", as_json=False)
    own = {"host": "127.0.0.1", "port": 0} | ({} if data_dir is None else {"data_dir": data_dir})
    private = settings.model_copy(update=own)
    async with running_worker(private, network=network) as base_url:
        yield WorkerClient(base_url, settings.read_token())


async def _run(arguments: argparse.Namespace, payload: dict[str, Any]) -> int:
    async with worker_at(arguments.url, network=arguments.tool in NETWORK_TOOLS) as worker:
        handles = [await worker.upload(path) for path in arguments.file]
        payload = fill_in(payload, handles)
        async with worker.session() as client:
            last = await _follow(client, arguments, payload)
        links = [block for block in last.content if isinstance(block, ResourceLink)]
        for link in links if arguments.save and not last.is_error else ():
            sys.stderr.write(f"saved {await worker.save(link, arguments.save)}\n")
        return int(bool(last.is_error))


async def _follow(client: Client, arguments: argparse.Namespace, payload: dict[str, Any]) -> CallToolResult:
    """Call until there is no cursor, or once; print every result and return the last."""
    while True:
        result = await client.call_tool(arguments.tool, payload, progress_callback=_show_progress)
        text = first_text(result)
        if result.is_error:
            sys.stderr.write(text + "\n")
            return result
        data = json.loads(text)
        _show_cost(result)
        sys.stdout.write((text if arguments.json else json.dumps(data, ensure_ascii=False, indent=2)) + "\n")
        if not (arguments.all and data.get("cursor")):
            return result
        payload = payload | {"cursor": data["cursor"]}


def _show_cost(result: CallToolResult) -> None:
    """One line on stderr where a provider that costs money is set up."""
    usage = (result.meta or {}).get(USAGE_KEY)
    if usage:
        tokens = f"{usage['input_tokens']} + {usage['output_tokens']} tokens"
        today = f"today {usage['usd_today']:.4f} of {usage['cap_usd']:g}"
        sys.stderr.write(f"cost {usage['usd']:.6f} USD ({usage['requests']} requests, {tokens}; {today})\n")


async def _show_progress(progress: float, total: float | None, message: str | None) -> None:
    sys.stderr.write(f"{message or progress}\n")


def fill_in(value: Any, handles: list[str]) -> Any:
    """Put handles in for `{file0}`, `{file1}` ... in every string of a JSON value.

    Raises:
        WorkerError: a placeholder has no file.
    """
    if isinstance(value, dict):
        return {key: fill_in(item, handles) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, handles) for item in value]
    if isinstance(value, str) and value.startswith("{file") and value.endswith("}") and value[5:-1].isdigit():
        if int(value[5:-1]) >= len(handles):
            raise WorkerError("file_placeholder", f"{value} has no --file", next_step="give one --file per placeholder")
        return handles[int(value[5:-1])]
    return value
