"""Brings weights onto the disk, whole or not at all, and looks whether those there are the right ones.

Fetching is an operator's command: no tool call and no server start ever does it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from sam2_mcp_worker.disk import file_sha256, storage_error
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.manifest import Model, ModelFile

# Bytes read at a time: progress every few MB, and constant memory.
CHUNK_BYTES = 1024 * 1024
# Connecting, and each wait for more bytes; a slow line may take an hour for the whole all the same.
STALL_TIMEOUT_S = 60.0

Progress = Callable[[str, int, int], None]
"""Called with file name, bytes here so far, bytes in all."""


def verify(model: Model, weights_dir: Path) -> None:
    """Look at every byte of the model's files.

    Raises:
        WorkerError: `weights_missing` or `weights_wrong`, with the mend.
    """
    for path, file in zip(model.paths(weights_dir), model.files, strict=True):
        if not path.is_file():
            raise WorkerError(
                "weights_missing",
                f"{file.name} of {model.name} is not there",
                next_step=f"run `sam2-mcp-worker models fetch {model.name}`",
                private=str(path),
            )
        size = path.stat().st_size
        if size != file.size_bytes or file_sha256(path) != file.sha256:
            raise WorkerError(
                "weights_wrong",
                f"{file.name} has {size} bytes and another content than the manifest says",
                rule=f"{file.size_bytes} bytes with SHA-256 {file.sha256[:16]}...",
                next_step=f"run `sam2-mcp-worker models fetch {model.name}`, which replaces it",
                private=str(path),
            )


def fetch(model: Model, weights_dir: Path, *, mirror: str | None = None, progress: Progress | None = None) -> int:
    """Fetch those files of the model that are not there yet; returns how many came.

    Args:
        mirror: folder URL that is asked for `<file name>` instead of the manifest's address. What comes from it must
            have the same hash.

    Raises:
        WorkerError: `fetch_failed`, `weights_wrong`, `no_space` or `storage_failed`. Nothing half-written is left.
    """
    fetched = 0
    for path, file in zip(model.paths(weights_dir), model.files, strict=True):
        if path.is_file() and path.stat().st_size == file.size_bytes and file_sha256(path) == file.sha256:
            continue
        address = file.address if mirror is None else f"{mirror.rstrip('/')}/{file.name}"
        _fetch_file(address, file, path, progress)
        fetched += 1
    return fetched


def _fetch_file(address: str, file: ModelFile, path: Path, progress: Progress | None) -> None:
    part = path.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_parts(path)
        _check_space(path.parent, file)
        _download(address, file, part, progress)
        part.replace(path)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(file, f"the host could not be read ({type(error).__name__})", address) from error
    except OSError as error:
        raise storage_error(error) from error
    finally:
        part.unlink(missing_ok=True)


def _clear_parts(path: Path) -> None:
    """Remove what fetches that were killed left: one that lives writes more often than that."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # another fetch has just finished with it
            if time.time() - part.stat().st_mtime > 2 * STALL_TIMEOUT_S:
                part.unlink(missing_ok=True)


def _check_space(folder: Path, file: ModelFile) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < file.size_bytes:
        raise WorkerError(
            "no_space",
            f"{file.name} needs {file.size_bytes // 10**6} MB and {free_bytes // 10**6} MB are free",
            next_step="free space, or set SAM2_MCP_MODELS_DIR to another disk",
        )


def _download(address: str, file: ModelFile, part: Path, progress: Progress | None) -> None:
    digest, size = hashlib.sha256(), 0
    with (
        httpx.Client(timeout=STALL_TIMEOUT_S) as client,
        client.stream("GET", address) as response,
        part.open("wb") as out,
    ):
        if response.status_code != httpx.codes.OK:
            raise _failed(file, f"the host answered {response.status_code}", address)
        for chunk in response.iter_bytes(CHUNK_BYTES):
            size += len(chunk)
            if size > file.size_bytes:
                break
            digest.update(chunk)
            out.write(chunk)
            if progress is not None:
                progress(file.name, size, file.size_bytes)
    if size != file.size_bytes or digest.hexdigest() != file.sha256:
        raise WorkerError(
            "weights_wrong",
            f"what came for {file.name} ({'more than ' if size > file.size_bytes else ''}{size} bytes) is not the file",
            rule=f"{file.size_bytes} bytes with SHA-256 {file.sha256[:16]}...",
            next_step="try again, or name a mirror with --mirror",
            private=address,
        )


def _failed(file: ModelFile, what: str, address: str) -> WorkerError:
    return WorkerError(
        "fetch_failed",
        f"{file.name}: {what}",
        next_step="check the connection, name a mirror with --mirror URL, or copy the file there and run "
        "`sam2-mcp-worker models verify`",
        private=address,
    )
