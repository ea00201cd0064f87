"""`doctor`: is everything there that the worker needs? Each finding with its mend."""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.cli import doctor_image
from sam2_mcp_worker.disk import check_data_dir
from sam2_mcp_worker.engines.segmenter import segmenter_identity
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.segmentation import choose
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `state` is `ok` or `failed`; `detail` says what was found, or what to do."""

    check: str
    state: str
    detail: str


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor", help="check settings, language data, disk and engines; `doctor image` follows a picture to the client"
    )
    parser.add_argument("what", nargs="?", choices=("image",), help="image: send a picture along the whole road")
    parser.add_argument("file", nargs="?", type=Path, help="the picture; without it a test picture is drawn")
    parser.add_argument("--url", help="image: a worker that runs already; without it one is started for this")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 when one failed."""
    if arguments.what == "image":
        return doctor_image.run(arguments)
    if arguments.url is not None:
        raise WorkerError("url_without_image", "--url belongs to `doctor image`", next_step="say `doctor image --url`")
    settings = Settings()
    checks: list[tuple[str, Callable[[], str]]] = [
        ("bind", lambda: _bind(settings)),
        ("language data", lambda: str(settings.find_tessdata())),
        ("data directory", lambda: _data_dir(settings)),
        ("port", lambda: _port(settings)),
        ("segmentation", lambda: _segmentation(settings)),
        ("claude", lambda: _claude(settings)),
        ("speech", lambda: _speech(settings)),
        ("embeddings", lambda: _embeddings(settings)),
        ("processes", lambda: asyncio.run(_processes(settings))),
    ]
    findings = [_check(name, check) for name, check in checks]
    if arguments.json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False) + "\n")
    else:
        for finding in findings:
            sys.stdout.write(f"{finding.state:6}  {finding.check:15}  {finding.detail}\n")
    return int(any(finding.state == "failed" for finding in findings))


def _check(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", check())
    except WorkerError as error:
        return Finding(name, "failed", error.public_text)
    except OSError as error:
        return Finding(name, "failed", f"{error.strerror}: {error.filename or ''}".strip(": "))


def _bind(settings: Settings) -> str:
    settings.check_bind()
    return f"{settings.host}, {'with' if settings.read_token() else 'without'} a token"


def _data_dir(settings: Settings) -> str:
    check_data_dir(settings.data_dir)
    return f"{settings.data_dir} can be written"


def _port(settings: Settings) -> str:
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise WorkerError(
                "port_taken",
                f"port {settings.port} on {settings.host}: {error.strerror}",
                next_step="stop the other program, or set SAM2_MCP_PORT",
            ) from error
    return f"{settings.port} is free"


def _segmentation(settings: Settings) -> str:
    """The engine that would be taken. Having none is a state that may be meant, not a failure."""
    choice = choose(settings)
    if choice.engine is None:
        assert choice.no_masks is not None
        return f"off: {choice.no_masks.public_text}"
    identity = segmenter_identity(choice.engine, choice.weights)
    return f"{identity}{'' if choice.no_tracking is None else f'; {choice.no_tracking.public_text}'}"


def _claude(settings: Settings) -> str:
    # The provider's SDK takes two seconds to import: no other command is to wait for it.
    from sam2_mcp_worker.cli.doctor_claude import claude_finding

    return asyncio.run(claude_finding(settings))


def _speech(settings: Settings) -> str:
    from sam2_mcp_worker.cli.doctor_speech import speech_finding  # its HTTP client is for this command only

    return asyncio.run(speech_finding(settings))


def _embeddings(settings: Settings) -> str:
    if settings.embeddings_api_key is None:
        return "off: no text leaves this machine"
    from sam2_mcp_worker.cli.doctor_embeddings import embeddings_finding  # its HTTP client is for this command only

    return asyncio.run(embeddings_finding(settings))


async def _processes(settings: Settings) -> str:
    services = Services(settings)
    await services.start()
    try:
        await asyncio.gather(*(pool.wait_ready() for pool in services.pools))
        return f"{', '.join(f'{pool.size} {pool.name}' for pool in services.pools)}: all load"
    finally:
        await services.close()
