"""The network of SAM 2.1: built from ultralytics' own modules, filled with plain tensors, never by unpickling objects.

Owns the four sizes, the environment that keeps ultralytics off the network, stdout and pip, and the way from a file of
weights to a model that infers. It knows no pictures, no exports and no sessions. For child processes only.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

# Read by ultralytics 8.4.190 while it is imported: without them it looks up public hosts, installs packages at run
# time, prints on stdout and writes a settings file into the home folder (reference/sam.md 2). The pool sets them too.
os.environ.setdefault("YOLO_OFFLINE", "1")
os.environ.setdefault("YOLO_AUTOINSTALL", "0")
os.environ.setdefault("YOLO_VERBOSE", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["YOLO_CONFIG_DIR"] = os.environ.get("YOLO_CONFIG_DIR") or tempfile.mkdtemp(prefix="sam2-mcp-yolo-")

import safetensors.torch
import torch
from PIL import Image
from safetensors import SafetensorError
from ultralytics.models.sam import build
from ultralytics.models.sam.modules.sam import SAM2Model
from ultralytics.utils import patches

from sam2_mcp_worker.errors import WorkerError

# ultralytics puts its own in the place of Pillow's, which looks for further packages when a picture is damaged.
Image.open = patches._image_open

if "sam2-mcp-yolo-" in os.environ["YOLO_CONFIG_DIR"]:  # made above, for this process alone
    atexit.register(shutil.rmtree, os.environ["YOLO_CONFIG_DIR"], ignore_errors=True)

_BUILDERS: dict[str, Callable[[], SAM2Model]] = {
    "sam2.1_hiera_tiny": build.build_sam2_t,
    "sam2.1_hiera_small": build.build_sam2_s,
    "sam2.1_hiera_base_plus": build.build_sam2_b,
    "sam2.1_hiera_large": build.build_sam2_l,
}
MODELS = tuple(_BUILDERS)
NAMES_SHOWN = 3  # of the tensors that are missing or unknown, in an error
INIT_STD = 0.02  # of the layers below before weights are loaded, as the rest of the network has it

State = dict[str, torch.Tensor]
# Import it from here and not from ultralytics, whose import must come after the environment above.
Network: TypeAlias = SAM2Model


def build_network(model: str) -> Network:
    """SAM 2.1 of this size with untrained weights, in evaluation mode.

    ultralytics decides between 2.0 and 2.1 by a word in the path of the checkpoint, and downloads one that is missing.
    Here no path is involved: a 2.0 network gets the three parts by which 2.1 differs, as SAM2Model's constructor
    makes them. A state dict of 2.1 fits only when all of them are there.

    Raises:
        WorkerError: `model_unknown`.
    """
    if model not in _BUILDERS:
        raise WorkerError("model_unknown", f"model {model} is not known", rule=f"one of {', '.join(MODELS)}")
    network = _BUILDERS[model]()
    network.no_obj_embed_spatial = torch.nn.Parameter(torch.randn(1, network.mem_dim) * INIT_STD)
    network.obj_ptr_tpos_proj = torch.nn.Linear(network.hidden_dim, network.mem_dim)
    network.proj_tpos_enc_in_obj_ptrs = True
    network.use_signed_tpos_enc_to_obj_ptrs = True
    return network.eval().requires_grad_(False)


def load_network(model: str, weights: Path, sha256: str) -> Network:
    """SAM 2.1 with the weights of a `.pt` or `.safetensors` file, in float32.

    The hash is compared before anything of the file is parsed; after that only tensors are taken from it.

    Raises:
        WorkerError: `weights_missing`, `weights_wrong` (other hash, damaged, other architecture) or `weights_unsafe`
            (a pickle that wants to make more than tensors).
    """
    with _open(weights, model) as file:
        _check_hash(file, weights, sha256, model)
        state = _read_safetensors(file) if weights.suffix == ".safetensors" else _read_checkpoint(file)
    network = build_network(model)
    _fill(network, state, model)
    return network


def use_threads(threads: int) -> None:
    """Set the threads of one inference; after the network is built, since ultralytics sets its own (1 on two cores)."""
    torch.set_num_threads(threads)


def _open(weights: Path, model: str) -> BufferedReader:
    try:
        return weights.open("rb")
    except OSError as error:
        raise WorkerError(
            "weights_missing",
            f"the weights {weights.name} cannot be read ({error.strerror or type(error).__name__})",
            next_step=_mend(model),
            private=str(weights),
        ) from error


def _check_hash(file: BufferedReader, weights: Path, sha256: str, model: str) -> None:
    found = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    if found != sha256.lower():
        raise WorkerError(
            "weights_wrong",
            f"the SHA-256 of {weights.name} is {found[:16]}…",
            rule=f"it must be {sha256[:16]}…; the file is damaged, cut off or another one",
            next_step=_mend(model),
            private=str(weights),
        )


def _read_safetensors(file: BufferedReader) -> State:
    try:
        return safetensors.torch.load(file.read())
    except SafetensorError as error:
        raise _damaged(str(error)) from error


def _read_checkpoint(file: BufferedReader) -> State:
    """The tensors of a torch checkpoint; `{"model": tensors}` is unpacked."""
    try:
        content: Any = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WorkerError(
            "weights_unsafe",
            "the weights were refused: they are not a file of plain tensors and could run code when loaded",
            rule="only tensors are read, never pickled objects",
            next_step="take the original file, or save its tensors as .safetensors",
            private=str(error),
        ) from error
    except (RuntimeError, OSError, EOFError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise _damaged(str(error)) from error
    if isinstance(content, Mapping) and isinstance(content.get("model"), Mapping):
        content = content["model"]
    if not isinstance(content, Mapping) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise _damaged(f"holds a {type(content).__name__} that is not a table of tensors")
    return dict(content)


def _damaged(reason: str) -> WorkerError:
    return WorkerError(
        "weights_wrong",
        "the weights have the expected SHA-256 but cannot be read",
        rule="a torch checkpoint of tensors or a .safetensors file is needed",
        next_step="check the file and its SHA-256 in the settings",
        private=reason,
    )


def _fill(network: Network, state: State, model: str) -> None:
    """Put the tensors into the network; all of them must fit."""
    wanted = {name: tensor.shape for name, tensor in network.state_dict().items()}
    given = {name: tensor.shape for name, tensor in state.items()}
    problems = [
        _named("missing", sorted(wanted.keys() - given.keys())),
        _named("unknown", sorted(given.keys() - wanted.keys())),
        _named("of another shape", sorted(n for n in wanted.keys() & given.keys() if wanted[n] != given[n])),
    ]
    if any(problems):
        raise WorkerError(
            "weights_wrong",
            f"the weights are not those of {model}: {', '.join(p for p in problems if p)}",
            rule="they must fit SAM2_MCP_SAM_MODEL; SAM 2.0 and SAM 2.1 differ",
            next_step=_mend(model),
        )
    network.load_state_dict({name: tensor.float() for name, tensor in state.items()}, assign=True)
    network.requires_grad_(False)


def _named(what: str, names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN]) + (" …" if len(names) > NAMES_SHOWN else "")
    return f"{len(names)} tensors {what} ({shown})" if names else ""


def _mend(model: str) -> str:
    return f"run `sam2-mcp-worker models fetch {model}`, or name the right file in SAM2_MCP_SAM_WEIGHTS"
