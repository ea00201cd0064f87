"""Builds the bridge as one file: `python deploy/pyz/build.py [OUTPUT]`, by default dist/sam2-mcp-bridge.pyz.

The same sources give the same bytes on any machine, with any Python: names are sorted, times and modes are fixed, and
nothing is compressed, since the output of a compressor depends on its version. httpx is not inside: whoever starts the
file has it importable, or reads on stderr that it is missing.

No bytecode either: it fits one minor version of Python, and would make the file depend on whoever built it. Measured on
Python 3.13, a session starts in 0.12 s rather than 0.07 s for that, and takes 0.3 MB more of 11.5.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bridge" / "sam2_mcp_bridge"
OUTPUT = ROOT / "dist" / "sam2-mcp-bridge.pyz"

SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = b"from sam2_mcp_bridge.__main__ import main\n\nraise SystemExit(main())\n"

# The earliest time that a ZIP file can hold.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
UNIX = 3
REGULAR_FILE_0644 = 0o100644 << 16


def members() -> dict[str, bytes]:
    """Every source file of the package by its name in the archive, with LF line ends, and the licence it is under."""
    files = {f"sam2_mcp_bridge/{path.relative_to(PACKAGE).as_posix()}": path for path in PACKAGE.rglob("*.py")}
    files["LICENSE"] = ROOT / "LICENSE"
    return {"__main__.py": MAIN} | {name: path.read_bytes().replace(b"\r\n", b"\n") for name, path in files.items()}


def build(output: Path) -> str:
    """Write the archive; its SHA-256. A reader never sees half a file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(output.name + ".part")
    with unfinished.open("wb") as stream:
        stream.write(SHEBANG)
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, content in sorted(members().items()):
                entry = zipfile.ZipInfo(name, TIMESTAMP)
                entry.create_system, entry.external_attr = UNIX, REGULAR_FILE_0644
                archive.writestr(entry, content)
    unfinished.chmod(0o755)
    unfinished.replace(output)
    return hashlib.sha256(output.read_bytes()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", nargs="?", type=Path, default=OUTPUT)
    output: Path = parser.parse_args().output
    sys.stdout.write(f"{build(output)}  {output}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
