"""`models list | fetch | verify`: the weights of the segmentation engines."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.files import fetch, verify
from sam2_mcp_worker.models.manifest import MODELS, Model, find_model
from sam2_mcp_worker.segmentation import Choice, choose
from sam2_mcp_worker.services import build_sam_pool
from sam2_mcp_worker.settings import Settings

PROGRESS_STEPS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """What is told of one model: `state` is `absent | present | verified | wrong | fetched`."""

    model: Model
    state: str
    detail: str

    def as_json(self) -> dict[str, Any]:
        """For programs; addresses and hashes are for people who fetch by hand."""
        return {
            "name": self.model.name,
            "engine": self.model.engine,
            "state": self.state,
            "detail": self.detail,
            "licence": self.model.licence,
            "note": self.model.note,
            "files": [
                {"name": file.name, "address": file.address, "size_bytes": file.size_bytes, "sha256": file.sha256}
                for file in self.model.files
            ],
        }


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser("models", help="weights: list, fetch or verify them")
    parser.add_argument("action", choices=("list", "fetch", "verify"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="models by name; fetch and verify: by default yours")
    parser.add_argument(
        "--mirror", metavar="URL", help="fetch <URL>/<file name> instead; hashes are checked all the same"
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each model; 1 when one is wrong or could not be fetched."""
    settings = Settings()
    actions = {"list": _list, "fetch": _fetch, "verify": _verify}
    rows = [actions[arguments.action](model, settings, arguments) for model in _chosen(arguments, settings)]
    if arguments.json:
        document = {"folder": str(settings.weights_dir), "models": [row.as_json() for row in rows]}
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"in {settings.weights_dir}\n")
        for row in rows:
            sys.stdout.write(f"{row.state:9} {row.model.name:24} {row.detail}\n")
    return int(any(row.state == "wrong" for row in rows))


def _chosen(arguments: argparse.Namespace, settings: Settings) -> list[Model]:
    if not arguments.names:
        if arguments.action == "list":
            return list(MODELS)
        if arguments.action == "verify":
            present = [model for model in MODELS if any(path.exists() for path in model.paths(settings.weights_dir))]
            return present or [model for model in MODELS if model.name == settings.sam_model]
        return [model for model in MODELS if model.name == settings.sam_model]
    return [_known(name) for name in arguments.names]


def _known(name: str) -> Model:
    model = find_model(name)
    if model is None:
        raise WorkerError(
            "model_unknown",
            f"there is no model {name[:60]!r}",
            next_step=f"use one of {', '.join(model.name for model in MODELS)}",
        )
    return model


def _list(model: Model, settings: Settings, _: argparse.Namespace) -> Row:
    megabytes = sum(file.size_bytes for file in model.files) / 1e6
    state = "present" if model.present(settings.weights_dir) else "absent"
    return Row(model, state, f"{megabytes:5.0f} MB  {model.engine:5} {model.note}; {model.licence}")


def _verify(model: Model, settings: Settings, _: argparse.Namespace) -> Row:
    try:
        verify(model, settings.weights_dir)
    except WorkerError as error:
        return Row(model, "wrong", error.public_text)
    return Row(model, "verified", "size and SHA-256 are those of the manifest")


def _fetch(model: Model, settings: Settings, arguments: argparse.Namespace) -> Row:
    try:
        came = fetch(model, settings.weights_dir, mirror=arguments.mirror, progress=_Progress())
    except WorkerError as error:
        return Row(model, "wrong", error.public_text)
    detail = f"{came} of {len(model.files)} files came, all are right"
    choice = choose(settings)
    if model.engine != "sam2" or model.name != settings.sam_model or choice.engine != "sam2":
        return Row(model, "fetched" if came else "verified", detail)
    try:
        asyncio.run(_load_once(settings, choice))
    except WorkerError as error:
        return Row(model, "wrong", error.public_text)
    return Row(model, "fetched" if came else "verified", f"{detail}; they load, and their encoders were checked")


async def _load_once(settings: Settings, choice: Choice) -> None:
    """The first start with new weights compares the encoders with torch, which takes half a minute: here nobody waits.

    Raises:
        WorkerError: the engine cannot start with these weights.
    """
    sys.stderr.write("loading them once, and checking the encoders\n")
    pool = build_sam_pool(settings, choice)
    assert pool is not None, "an engine was chosen"
    async with pool:
        pass


class _Progress:
    """A line on stderr every twentieth of a file."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def __call__(self, name: str, here_bytes: int, all_bytes: int) -> None:
        step = PROGRESS_STEPS * here_bytes // all_bytes
        if step > self._told.get(name, -1):
            self._told[name] = step
            sys.stderr.write(f"{name}: {here_bytes // 10**6} of {all_bytes // 10**6} MB\n")
