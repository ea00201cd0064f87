"""Opens an ONNX file only when it is the one that was meant."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnxruntime

from sam2_mcp_worker.engines.onnx_session import open_session
from sam2_mcp_worker.errors import WorkerError

MEND = "fetch it anew with `sam2-mcp-worker models fetch`, or set its path and its SHA-256"


def open_verified(path: Path, sha256: str, what: str, *, threads: int) -> onnxruntime.InferenceSession:
    """A session of exactly the bytes whose hash was compared: the file is read once, and pulls in no other file.

    Args:
        path: the `.onnx` file.
        sha256: its hash, hexadecimal.
        what: its name in messages, e.g. `the encoder`. The path goes to the log only.
        threads: of one inference.

    Raises:
        WorkerError: `weights_missing` | `weights_wrong`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WorkerError(
            "weights_missing",
            f"{what} {path.name} cannot be read ({error.strerror or type(error).__name__})",
            next_step=MEND,
            private=str(path),
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256.strip().lower():
        raise WorkerError(
            "weights_wrong",
            f"the SHA-256 of {what} {path.name} is {found[:16]}…",
            rule=f"it must be {sha256[:16]}…; the file is damaged, cut off or another one",
            next_step=MEND,
            private=str(path),
        )
    try:
        return open_session(data, threads=threads)
    except Exception as error:  # ONNX Runtime's exceptions have no base of their own
        raise WorkerError(
            "weights_wrong",
            f"{what} {path.name} has the expected SHA-256 but ONNX Runtime cannot load it",
            rule="one self-contained .onnx file, no external data",
            next_step=MEND,
            private=str(error),
        ) from error
