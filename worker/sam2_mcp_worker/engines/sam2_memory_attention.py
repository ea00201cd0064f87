"""The memory attention of SAM 2 as a small graph for ONNX Runtime: the part of tracking that costs most.

Owns the graph and the algebra that makes it cheap. It knows no sessions: which memories take part is the caller's
choice. For child processes only.

The result is that of the network's own module to about 1e-5, with less to compute. Values are linear in memories of
64 channels, so attention sums over those 64 and is projected to 256 afterwards: `softmax(QK)(MV) = (softmax(QK)M)V`,
a quarter of that product. The value and output projections of each attention are one matrix for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import TensorProto
from ultralytics.models.sam.modules.memory_attention import MemoryAttentionLayer
from ultralytics.models.sam.modules.sam import SAM2Model
from ultralytics.models.sam.modules.utils import compute_axial_cis

from sam2_mcp_worker.engines.onnx_graph import Graph, Shape
from sam2_mcp_worker.engines.onnx_session import open_session

Array = NDArray[np.float32]

FRAME_PLACE_WEIGHT = 0.1  # of the position encoding that is added to a frame's features, as SAM 2 was trained


class Sam2MemoryAttention:
    """Conditions the features of a frame on memories of earlier ones, for frames of one size.

    Args:
        network: gives the weights, which are copied (24 MB).
        side_px: the frames' side; a multiple of 16.
        threads: of one run.
    """

    def __init__(self, network: SAM2Model, *, side_px: int, threads: int) -> None:
        graph = build_memory_attention(network, side_px // network.backbone_stride)
        self._session = open_session(graph, threads=threads, arena=True)

    def __call__(
        self, features: Array, memories: Array, memory_ages: Array, pointers: Array, pointer_ages: Array
    ) -> Array:
        """The features `(tokens, 256)` of one frame, conditioned for one object.

        Args:
            features: `(tokens, 256)` of the frame, rows first.
            memories: `(m, tokens, 64)`, at least one.
            memory_ages: `(m, 64)`, the temporal encoding of each memory.
            pointers: `(p, 64)` object pointers, cut into tokens of 64.
            pointer_ages: `(p, 64)`, their temporal encoding.
        """
        inputs = {
            "features": features,
            "memories": memories,
            "memory_ages": memory_ages,
            "pointers": pointers,
            "pointer_ages": pointer_ages,
        }
        conditioned: Array = self._session.run(None, inputs)[0]
        return conditioned


@dataclass(frozen=True, slots=True)
class _Rotary:
    """Rotary position encoding of a square grid of tokens."""

    graph: Graph
    start: str
    cosine: str
    sine: str

    @classmethod
    def of_grid(cls, graph: Graph, side: int, channels: int) -> _Rotary:
        turns = compute_axial_cis(channels, end_x=side, end_y=side)
        return cls(graph, graph.constant([0]), graph.constant(turns.real), graph.constant(turns.imag))

    def __call__(self, x: str) -> str:
        """Rotate pairs of neighbouring channels of `(batch, tokens, channels)`."""
        return self.graph.runtime_node("RotaryEmbedding", x, self.start, self.cosine, self.sine, interleaved=1)


@dataclass(frozen=True, slots=True)
class _Bank:
    """What the frame may look at: keys of memories `(m, tokens, 64)` and of pointers, and the values of both."""

    memories: str
    pointers: str
    values: str


def build_memory_attention(network: SAM2Model, grid: int) -> bytes:
    """The memory attention of `network` for frames of `grid` x `grid` tokens; see `Sam2MemoryAttention` for the inputs.

    The architecture (one head, no position in queries, position in the keys of memories) is the same in all sizes of
    SAM 2; test_sam2_memory_attention compares the result with the network's own module.
    """
    attention: Any = network.memory_attention
    channels, memory_channels = network.hidden_dim, network.mem_dim
    graph = Graph()
    rotary = _Rotary.of_grid(graph, grid, channels)
    bank = _bank(graph, _sine_positions(network.memory_encoder.position_encoding, memory_channels, grid))
    encoder: Any = network.image_encoder
    x = graph.node(
        "Add",
        "features",
        graph.constant(FRAME_PLACE_WEIGHT * _sine_positions(encoder.neck.position_encoding, channels, grid)),
    )
    for layer in attention.layers:
        x = _layer(graph, rotary, layer, x, bank)
    tokens = grid * grid
    shapes: dict[str, Shape] = {
        "features": (tokens, channels),
        "memories": ("m", tokens, memory_channels),
        "memory_ages": ("m", memory_channels),
        "pointers": ("p", memory_channels),
        "pointer_ages": ("p", memory_channels),
    }
    inputs = {name: (int(TensorProto.FLOAT), shape) for name, shape in shapes.items()}
    return graph.model("memory_attention", inputs, {"conditioned": (graph.norm(x, attention.norm), (tokens, channels))})


def _bank(graph: Graph, places: torch.Tensor) -> _Bank:
    ages = graph.node("Unsqueeze", "memory_ages", graph.constant([1]))
    memories = graph.node("Add", graph.node("Add", "memories", graph.constant(places)), ages)
    flat = graph.reshape("memories", -1, places.shape[1])
    values = _batch_of_one(graph, graph.node("Concat", flat, "pointers", axis=0))
    return _Bank(memories, graph.node("Add", "pointers", "pointer_ages"), values)


def _layer(graph: Graph, rotary: _Rotary, layer: MemoryAttentionLayer, x: str, bank: _Bank) -> str:
    """One of the four layers: attention among the frame's tokens, attention to the memories, two linear layers."""
    own: Any = layer.self_attn
    cross: Any = layer.cross_attn_image
    seen = graph.norm(x, layer.norm1)
    queries, keys = (rotary(_batch_of_one(graph, _project(graph, p, seen))) for p in (own.q_proj, own.k_proj))
    values = graph.linear(seen, own.out_proj.weight @ own.v_proj.weight, _output_bias(own))
    x = graph.node("Add", x, _attend(graph, queries, keys, _batch_of_one(graph, values)))

    queries = rotary(_batch_of_one(graph, _project(graph, cross.q_proj, graph.norm(x, layer.norm2))))
    spatial = graph.reshape(rotary(_project(graph, cross.k_proj, bank.memories)), 1, -1, cross.internal_dim)
    keys = graph.node("Concat", spatial, _batch_of_one(graph, _project(graph, cross.k_proj, bank.pointers)), axis=1)
    summed = _attend(graph, queries, keys, bank.values)
    x = graph.node("Add", x, graph.linear(summed, cross.out_proj.weight @ cross.v_proj.weight, _output_bias(cross)))

    hidden = graph.node("Relu", _project(graph, layer.linear1, graph.norm(x, layer.norm3)))
    return graph.node("Add", x, _project(graph, layer.linear2, hidden))


def _attend(graph: Graph, queries: str, keys: str, values: str) -> str:
    """`softmax(queries @ keys.T / sqrt(channels)) @ values` of one head, from `(1, tokens, channels)` each.

    One operator, which never holds all scores: 30 MB at 512 px.
    """
    attended = graph.runtime_node("MultiHeadAttention", queries, keys, values, num_heads=1)
    return graph.node("Squeeze", attended, graph.constant([0]))


def _project(graph: Graph, layer: torch.nn.Linear, x: str) -> str:
    return graph.linear(x, layer.weight, layer.bias)


def _batch_of_one(graph: Graph, x: str) -> str:
    return graph.node("Unsqueeze", x, graph.constant([0]))


def _output_bias(attention: Any) -> torch.Tensor:
    """Attention weights sum to one, so the bias of the values passes through the output projection once."""
    bias: torch.Tensor = attention.out_proj.weight @ attention.v_proj.bias + attention.out_proj.bias
    return bias


def _sine_positions(encoding: Any, channels: int, grid: int) -> torch.Tensor:
    """`(tokens, channels)` of the network's own position table."""
    table: torch.Tensor = encoding(torch.zeros(1, channels, grid, grid))
    return table[0].flatten(1).t()
