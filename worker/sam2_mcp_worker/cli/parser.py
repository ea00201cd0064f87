"""The command line: what there is, and which function does it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pydantic import ValidationError

from sam2_mcp_worker.cli import bench, call, demo, doctor, eval, models, rules, serve
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.version import worker_version

EXIT_STARTUP = 3
COMMANDS = (serve, call, doctor, demo, models, bench, eval, rules)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = argparse.ArgumentParser(
        prog="sam2-mcp-worker", description="Vision tools for agents over MCP. Settings come from SAM2_MCP_* variables."
    )
    parser.add_argument("--version", action="version", version=worker_version())
    commands = parser.add_subparsers(dest="command", required=True)
    for module in COMMANDS:
        command = module.add_parser(commands)
        command.add_argument("--json", action="store_true", help="for programs: JSON instead of text")
        command.set_defaults(run=module.run)
    return parser


def run(argv: Sequence[str]) -> int:
    """Parse and run; anticipated failures become one line on stderr."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except WorkerError as error:
        sys.stderr.write(f"sam2-mcp-worker: {error.public_text}\n")
        return EXIT_STARTUP
    except ValidationError as error:
        for item in error.errors():
            sys.stderr.write(f"sam2-mcp-worker: SAM2_MCP_{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}\n")
        return EXIT_STARTUP
    except KeyboardInterrupt:
        return 130
    return code
