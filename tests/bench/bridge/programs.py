"""What is measured: the bridge, the floor and the peers, each pinned and in a place of its own below .cache/bench.

The floor is the least that can carry a line to a worker and back. It lives in one virtual environment with the bridge,
which has httpx and nothing else, as a station has it: with click and rich beside it httpx imports 6 MB more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
BRIDGE = ROOT / "bridge" / "sam2_mcp_bridge"
CONSTRAINTS = ROOT / "constraints.txt"
CACHE = ROOT / ".cache" / "bench"
OWN = CACHE / "own"
MCP_PROXY = CACHE / "mcp-proxy"
NODE = CACHE / "node"

OURS = "ours"
OURS_FULL = "ours, full"
FLOOR = "floor"

MCP_PROXY_PACKAGE = "mcp-proxy==0.13.0"
NODE_PACKAGES = {"supergateway": "4.0.0", "mcp-remote": "0.15.1"}

# No order, no deadline, no session, no failure is handled.
FLOOR_CODE = """\
import json, sys
import httpx
client = httpx.Client(timeout=30)
headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
for line in sys.stdin.buffer:
    message = json.loads(line)
    answer = client.post(sys.argv[1], content=line, headers=headers)
    headers["Mcp-Session-Id"] = answer.headers.get("mcp-session-id", headers.get("Mcp-Session-Id", ""))
    if "id" in message:
        text = answer.text
        if "text/event-stream" in answer.headers["content-type"]:
            text = next(part[6:] for part in text.splitlines() if part.startswith("data: "))
        sys.stdout.write(text + "\\n")
        sys.stdout.flush()
"""


class Program(NamedTuple):
    """A command that takes the server's URL where it says URL, or from SAM2_MCP_URL."""

    name: str
    command: tuple[str, ...]
    matches_ids: bool = False  # made for hosts that match answers by id, not for those that take the next line

    def start(self, url: str) -> subprocess.Popen[bytes]:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("SAM2_MCP_", "PYTHON"))}
        return subprocess.Popen(
            [part.replace("URL", url) for part in self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=CACHE,
            env=environ | {"SAM2_MCP_URL": url},
        )


class Absent(NamedTuple):
    """A program that could not be installed here."""

    name: str
    reason: str


def own() -> list[Program]:
    """The bridge as it is in this checkout, laid out as its wheel would be, and the floor.

    Raises:
        CalledProcessError: they cannot be installed; nothing can be measured without them.
    """
    python = _environment(OWN, "httpx", "-c", str(CONSTRAINTS))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(OWN), "platbase": str(OWN)}))
    shutil.rmtree(packages / BRIDGE.name, ignore_errors=True)
    shutil.copytree(BRIDGE, packages / BRIDGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    _run(python, "-m", "compileall", "-q", str(packages / BRIDGE.name))
    bridge = (python, "-u", "-m", "sam2_mcp_bridge")
    return [
        Program(OURS, bridge),
        Program(OURS_FULL, (*bridge, "--profile", "full"), matches_ids=True),
        Program(FLOOR, (python, "-u", "-c", FLOOR_CODE, "URL")),
    ]


PEERS_ARE = (
    f"Peers: {MCP_PROXY_PACKAGE.replace('==', ' ')} (PyPI), "
    f"{', '.join(' '.join(package) for package in NODE_PACKAGES.items())} (npm, started with node itself: npx would "
    "add two processes and some 80 MB)."
)


def peers() -> list[Program | Absent]:
    """The other bridges."""
    return [_installed("mcp-proxy", _mcp_proxy)] + [
        _installed(name, make) for name, make in (("supergateway", _supergateway), ("mcp-remote", _mcp_remote))
    ]


def _installed(name: str, make: Callable[[], tuple[str, ...]]) -> Program | Absent:
    try:
        return Program(name, make())
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "output", None) or str(error)
        return Absent(name, " ".join(str(output).split())[-200:])


def _mcp_proxy() -> tuple[str, ...]:
    _environment(MCP_PROXY, MCP_PROXY_PACKAGE)
    return str(MCP_PROXY / "bin" / "mcp-proxy"), "--transport", "streamablehttp", "--log-level", "ERROR", "URL"


def _supergateway() -> tuple[str, ...]:
    options = ("--streamableHttp", "URL", "--outputTransport", "stdio", "--logLevel", "none")
    return _node(), str(_module("supergateway", "dist/index.js")), *options


def _mcp_remote() -> tuple[str, ...]:
    options = ("URL", "--allow-http", "--transport", "http-only", "--silent")
    return _node(), str(_module("mcp-remote", "dist/proxy.js")), *options


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        raise FileNotFoundError("there is no node on this machine")
    return node


def _module(package: str, file: str) -> Path:
    folder = NODE / "node_modules" / package
    version = NODE_PACKAGES[package]
    if not (folder / file).is_file() or f'"version": "{version}"' not in (folder / "package.json").read_text("utf-8"):
        NODE.mkdir(parents=True, exist_ok=True)
        wanted = [f"{name}@{pinned}" for name, pinned in NODE_PACKAGES.items()]
        _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(NODE), *wanted)
    return folder / file


def _environment(folder: Path, *requirements: str) -> str:
    """A virtual environment with these; made again where it was made for others."""
    python = folder / "bin" / "python"
    stamp = folder / "requirements.txt"
    wanted = "\n".join([sys.version, *requirements, CONSTRAINTS.read_text(encoding="utf-8")])
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(python), "-m", "pip", "install", "-q", *requirements)
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def _run(*command: str) -> None:
    environ = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", env=environ
    )
