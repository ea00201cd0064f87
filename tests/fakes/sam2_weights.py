"""Random weights of the true architecture of SAM 2.1: parity and speed are real, the masks are not."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file

from sam2_mcp_worker.engines.sam2_network import Network, State, build, build_network

TINY = "sam2.1_hiera_tiny"
CONSTANT_NOISE_STD = 0.02
RECIPE = 1  # raise it when random_state changes: files of another recipe lie in the same cache folder


@dataclass(frozen=True, slots=True)
class RandomWeights:
    """A file of random weights, and what its hash is."""

    path: Path
    sha256: str
    model: str


def random_state(model: str = TINY, seed: int = 0) -> State:
    """A state dict as the constructor initialises it from this seed, with noise on what it leaves constant.

    Biases, position tables and layer scales start at one value: parity would not notice if they were mixed up.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        state = build_network(model).state_dict()
        return {name: _varied(tensor).contiguous() for name, tensor in state.items()}


def _varied(tensor: torch.Tensor) -> torch.Tensor:
    constant = tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all())
    return tensor + torch.randn_like(tensor) * CONSTANT_NOISE_STD if constant else tensor.clone()


@functools.cache
def random_weights(model: str = TINY, seed: int = 0) -> RandomWeights:
    """The file with `random_state`, made once per machine and torch version (156 MB for the tiny model)."""
    folder = Path(tempfile.gettempdir()) / f"sam2-mcp-random-weights-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{model}-seed{seed}-recipe{RECIPE}-torch{torch.__version__}.safetensors"
    if not path.is_file():
        made = path.with_suffix(f".{os.getpid()}.part")
        save_file(random_state(model, seed), made)
        made.replace(path)
    with path.open("rb") as file:
        return RandomWeights(path, hashlib.file_digest(file, "sha256").hexdigest(), model)


def dwarf_network(windows: tuple[int, ...] = (8, 4, 14, 7), heads: int = 1) -> Network:
    """A network of the same modules with few channels: quick to build, and with windows and heads to choose."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build._build_sam2(
            encoder_embed_dim=16 * heads,
            encoder_stages=(1, 2, 3, 2),
            encoder_num_heads=heads,
            encoder_global_att_blocks=(4,),
            encoder_window_spec=windows,
            encoder_backbone_channel_list=[channels * heads for channels in (128, 64, 32, 16)],
        )
        for parameter in network.requires_grad_(False).parameters():
            parameter.add_(torch.randn_like(parameter) * CONSTANT_NOISE_STD)
    return network
