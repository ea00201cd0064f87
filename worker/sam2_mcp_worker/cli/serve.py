"""`serve`: the worker in the foreground."""

from __future__ import annotations

import argparse
import os
import signal
from types import FrameType
from typing import Any

from sam2_mcp_worker.cli.logs import set_up_logging
from sam2_mcp_worker.disk import check_data_dir
from sam2_mcp_worker.settings import Settings


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser("serve", help="serve MCP on http://HOST:PORT/mcp")
    parser.add_argument("--host", help="address to listen on (SAM2_MCP_HOST, 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (SAM2_MCP_PORT, 8765); 0 takes a free one")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; 3 when the worker cannot start."""
    overrides = {name: value for name in ("host", "port") if (value := getattr(arguments, name)) is not None}
    settings = Settings(**overrides)
    set_up_logging(settings.log_level, as_json=arguments.json)
    settings.check_bind()
    settings.find_tessdata()
    check_data_dir(settings.data_dir)
    _detach_stdin()
    from sam2_mcp_worker.cli.server import build_server  # after the checks: their errors come at once

    # uvicorn stops in order on these and then raises them again: that is not a failure, so it ends with 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    server = build_server(settings)
    server.run()
    return 0 if server.started else 3


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _detach_stdin() -> None:
    """No child and no library may wait on the terminal's input (reference/mcp.md W6)."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
