"""The command line of the station: flags, or the environment names beside them."""

import argparse
import logging
import os
from collections.abc import Sequence

import uvicorn

from .app import LOCAL_HOSTS, create_app

# A call may wait 30 s for its line; a station that is told to stop does not.
OPEN_CALLS_GRACE_S = 2


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="minimal-station", description="An MCP station for rehearsals without XGEN.")
    parser.add_argument("--host", default=os.environ.get("STATION_HOST", "127.0.0.1"), help="STATION_HOST")
    parser.add_argument("--port", type=int, default=int(os.environ.get("STATION_PORT", "8000")), help="STATION_PORT")
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[each for each in os.environ.get("STATION_ALLOWED_HOSTS", "").split(",") if each],
        help="a Host name to answer besides 127.0.0.1 and localhost; repeatable; STATION_ALLOWED_HOSTS, with commas",
    )
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    logging.basicConfig(level=arguments.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    app = create_app(allowed_hosts=[*LOCAL_HOSTS, *arguments.allowed_host])
    uvicorn.run(
        app,
        host=arguments.host,
        port=arguments.port,
        log_config=None,  # uvicorn's lines go through the format above
        access_log=arguments.log_level == "debug",
        timeout_graceful_shutdown=OPEN_CALLS_GRACE_S,
    )
    return 0
