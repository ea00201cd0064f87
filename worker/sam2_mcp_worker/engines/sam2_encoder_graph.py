"""The image encoder of SAM 2.1 as a graph for ONNX Runtime, for pictures of one size, in float32 or int8.

Owns the graph and the algebra that makes it cheap; in float32 it computes what the network's own modules do, to
rounding. It opens no sessions. For child processes only.

Cheaper than a traced export, with the same result:
- attention is one operator that holds no scores, adds the bias of queries, keys and values on its way, and takes
  their layout as it is;
- what pads a map to whole windows is added after the products, so that nothing is multiplied by it;
- two linear layers in a row without anything between (the fine levels of the neck and of the mask decoder) are one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from onnx import TensorProto

from sam2_mcp_worker.engines.onnx_graph import Graph, Shape
from sam2_mcp_worker.engines.sam2_network import Network

Precision = Literal["fp32", "int8"]

GRAPH_VERSION = 1  # raise it whenever the graph changes: checks against torch are made anew
PATCH_PX = 4  # side of a patch, the first level's cell
SIDE_STEP_PX = 32  # sides are multiples of it: three halvings of the patches
# The pictures that SAM was trained on were normalised so (red, green, blue).
MEAN_RGB = np.array([0.485, 0.456, 0.406], np.float32)
STD_RGB = np.array([0.229, 0.224, 0.225], np.float32)
# Weights are -127 to 127. Processors without VNNI add two products in 16 bits, which larger weights than 63 overflow.
INT8_RANGE, INT8_RANGE_NO_VNNI = 127, 63

Linear = Callable[[str, torch.Tensor, torch.Tensor | None], str]


@dataclass(frozen=True, slots=True)
class Map:
    """A feature map `(1, height, width, channels)`, rows first."""

    name: str
    height: int
    width: int
    channels: int


def build_encoder(network: Network, side_px: int, precision: Precision, *, int8_range: int = INT8_RANGE) -> bytes:
    """The encoder as a model: `image` uint8 `(1, side, side, 3)`, RGB, to `fine`, `middle` and `coarse`.

    These are the three levels of `SAM2Model.forward_image(...)["backbone_fpn"]`: `(1, 32, 4n, 4n)`, `(1, 64, 2n, 2n)`
    and `(1, 256, n, n)` with n = side / 16.
    """
    graph = Graph()
    encoder = _Encoder(graph, graph.linear if precision == "fp32" else _Int8(graph, int8_range).linear)
    levels = encoder.trunk(network.image_encoder.trunk, side_px)
    fine, middle, coarse = encoder.neck(network, levels)
    n = side_px // 16
    outputs: dict[str, tuple[str, Shape]] = {
        "fine": (fine, (1, 32, 4 * n, 4 * n)),
        "middle": (middle, (1, 64, 2 * n, 2 * n)),
        "coarse": (coarse, (1, 256, n, n)),
    }
    return graph.model("image_encoder", {"image": (TensorProto.UINT8, (1, side_px, side_px, 3))}, outputs)


@dataclass(frozen=True, slots=True)
class _Int8:
    """Linear layers whose weights are int8, one scale a channel, and whose inputs are quantised as they come."""

    graph: Graph
    range: int

    def linear(self, x: str, weight: torch.Tensor, bias: torch.Tensor | None) -> str:
        scale = (weight.abs().amax(dim=1) / self.range).clamp_min(torch.finfo(torch.float32).tiny)
        whole = (weight / scale[:, None]).round().to(torch.int8).t()
        zero = np.zeros(len(scale), np.int8)
        parts = [self.graph.constant(value) for value in (whole, scale, zero)]
        more = [] if bias is None else [self.graph.constant(bias)]
        return self.graph.runtime_node("DynamicQuantizeMatMul", x, *parts, *more)


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Translates the modules of the image encoder into nodes."""

    graph: Graph
    linear: Linear

    def trunk(self, trunk: Any, side_px: int) -> list[Map]:
        """Hiera: the output of each of the four stages."""
        graph = self.graph
        patches = side_px // PATCH_PX
        x = self._patches(trunk, patches)
        places = trunk._get_pos_embed((patches, patches))
        x = Map(graph.node("Add", x.name, graph.constant(places)), x.height, x.width, x.channels)
        levels = []
        for i, block in enumerate(trunk.blocks):
            x = self._block(block, x)
            if i in trunk.stage_ends:
                levels.append(x)
        return levels

    def neck(self, network: Network, levels: list[Map]) -> tuple[str, str, str]:
        """The feature pyramid and the projections of the mask decoder on it, channels first."""
        laterals = [conv.conv for conv in reversed(network.image_encoder.neck.convs)]
        decoder = network.sam_mask_decoder
        fine = self._projected(levels[0], laterals[0], decoder.conv_s0)
        middle = self._projected(levels[1], laterals[1], decoder.conv_s1)
        above = self._doubled(self._convolved(levels[3], laterals[3]))
        coarse = self.graph.node("Add", self._convolved(levels[2], laterals[2]).name, above)
        return fine, middle, self.graph.node("Transpose", coarse, perm=[0, 3, 1, 2])

    def _patches(self, trunk: Any, patches: int) -> Map:
        graph, conv = self.graph, trunk.patch_embed.proj
        planes = graph.node("Cast", graph.node("Transpose", "image", perm=[0, 3, 1, 2]), to=TensorProto.FLOAT)
        scaled = graph.node("Mul", planes, graph.constant((1 / (255 * STD_RGB)).reshape(1, 3, 1, 1)))
        embedded = graph.node(
            "Conv",
            graph.node("Sub", scaled, graph.constant((MEAN_RGB / STD_RGB).reshape(1, 3, 1, 1))),
            graph.constant(conv.weight),
            graph.constant(conv.bias),
            strides=list(conv.stride),
            pads=[*conv.padding, *conv.padding],
        )
        return Map(graph.node("Transpose", embedded, perm=[0, 2, 3, 1]), patches, patches, conv.out_channels)

    def _block(self, block: Any, x: Map) -> Map:
        """Attention and two linear layers; at the begin of a stage the map is halved and its channels change."""
        graph, attention, mlp = self.graph, block.attn, block.mlp.layers
        seen = Map(graph.norm(x.name, block.norm1), x.height, x.width, x.channels)
        kept = x
        if block.dim != block.dim_out:
            shortcut = self.linear(seen.name, block.proj.weight, block.proj.bias)
            kept = Map(shortcut, x.height, x.width, block.dim_out)
            kept = self._halved(kept) if block.q_stride else kept
        attended = self._attention(block, seen, kept)
        projected = self.linear(attended, attention.proj.weight, attention.proj.bias)
        sum_ = graph.node("Add", kept.name, projected)
        hidden = self.linear(graph.norm(sum_, block.norm2), mlp[0].weight, mlp[0].bias)
        active = graph.runtime_node("Gelu", hidden)
        outcome = graph.node("Add", sum_, self.linear(active, mlp[1].weight, mlp[1].bias))
        return Map(outcome, kept.height, kept.width, block.dim_out)

    def _attention(self, block: Any, seen: Map, kept: Map) -> str:
        """What each cell of `kept` gathers from `seen`, within windows or from everywhere, before its projection."""
        graph, attention, window = self.graph, block.attn, block.window_size
        whole = window and not (seen.height % window or seen.width % window)
        source = self._windows(seen, window) if whole else seen  # one map to turn instead of three
        parts = []
        for weight in attention.qkv.weight.chunk(3):
            product = Map(self.linear(source.name, weight, None), source.height, source.width, block.dim_out)
            parts.append(product if whole else self._windows(product, window))
        queries, keys, values = parts
        step = 1
        if block.q_stride:
            queries, step = self._halved(queries), block.q_stride[0]
        tokens = [graph.reshape(p.name, -1, p.height * p.width, p.channels) for p in (queries, keys, values)]
        bias = graph.constant(attention.qkv.bias)
        gathered = graph.runtime_node("MultiHeadAttention", *tokens, bias, num_heads=attention.num_heads)
        return self._joined(gathered, window // step, kept)

    def _windows(self, x: Map, window: int) -> Map:
        """The map cut into windows `(windows, window, window, channels)`, padded with 0 to whole ones; 0 = not cut."""
        if not window:
            return x
        graph = self.graph
        rows, columns = -(-x.height // window), -(-x.width // window)
        below, right = rows * window - x.height, columns * window - x.width
        name = x.name
        if below or right:
            name = graph.node("Pad", name, graph.constant([0, 0, 0, 0, 0, below, right, 0]))
        cut = graph.reshape(name, rows, window, columns, window, x.channels)
        turned = graph.node("Transpose", cut, perm=[0, 2, 1, 3, 4])
        return Map(graph.reshape(turned, rows * columns, window, window, x.channels), window, window, x.channels)

    def _joined(self, tokens: str, window: int, target: Map) -> str:
        """The inverse of `_windows` for the tokens of windows of this side: a map like `target`."""
        graph, shape = self.graph, (1, target.height, target.width, target.channels)
        if not window:
            return graph.reshape(tokens, *shape)
        rows, columns = -(-target.height // window), -(-target.width // window)
        cut = graph.reshape(tokens, rows, columns, window, window, target.channels)
        turned = graph.node("Transpose", cut, perm=[0, 2, 1, 3, 4])
        joined = graph.reshape(turned, 1, rows * window, columns * window, target.channels)
        starts, axes = graph.constant([0, 0]), graph.constant([1, 2])
        return graph.node("Slice", joined, starts, graph.constant([target.height, target.width]), axes)

    def _halved(self, x: Map) -> Map:
        """The larger of each 2 x 2 cells."""
        graph, height, width = self.graph, x.height // 2, x.width // 2
        middle = graph.constant([1])
        rows = graph.node("ReduceMax", graph.reshape(x.name, -1, 2, x.width * x.channels), middle, keepdims=0)
        cells = graph.node("ReduceMax", graph.reshape(rows, -1, 2, x.channels), middle, keepdims=0)
        return Map(graph.reshape(cells, -1, height, width, x.channels), height, width, x.channels)

    def _convolved(self, x: Map, conv: torch.nn.Conv2d) -> Map:
        """A 1 x 1 convolution; in float32 at either precision, since it costs little."""
        name = self.graph.linear(x.name, conv.weight.flatten(1), conv.bias)
        return Map(name, x.height, x.width, conv.out_channels)

    def _projected(self, x: Map, first: torch.nn.Conv2d, then: torch.nn.Conv2d) -> str:
        """Two 1 x 1 convolutions in one, channels first."""
        assert first.bias is not None and then.bias is not None
        weight = then.weight.flatten(1) @ first.weight.flatten(1)
        bias = then.weight.flatten(1) @ first.bias + then.bias
        return self.graph.node("Transpose", self.graph.linear(x.name, weight, bias), perm=[0, 3, 1, 2])

    def _doubled(self, x: Map) -> str:
        """Each cell four times, as its nearest neighbour upsampling gives it."""
        graph = self.graph
        cells = graph.reshape(x.name, 1, x.height, 1, x.width, 1, x.channels)
        repeated = graph.node("Expand", cells, graph.constant([1, x.height, 2, x.width, 2, x.channels]))
        return graph.reshape(repeated, 1, 2 * x.height, 2 * x.width, x.channels)
