"""Builds small graphs for ONNX Runtime node by node, so that no exporter is needed at run time.

Owns the names of nodes and constants, and the operators that networks here are made of. It knows no network.
For child processes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 10
# Operators of ONNX Runtime itself: each is one pass over its input where plain ones need several.
RUNTIME_DOMAIN = "com.microsoft"

Shape = Sequence[int | str]


@dataclass(slots=True)
class Graph:
    """Nodes and constants in the making; each method returns the name of what it computes."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """One operator with one output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def runtime_node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One operator of ONNX Runtime's own."""
        return self.node(operator, *inputs, domain=RUNTIME_DOMAIN, **attributes)

    def constant(self, value: torch.Tensor | NDArray[Any] | list[int]) -> str:
        """A tensor of the graph's own."""
        array = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def linear(self, x: str, weight: torch.Tensor, bias: torch.Tensor | None) -> str:
        """`x @ weight.T + bias` over the last axis of `x`."""
        product = self.node("MatMul", x, self.constant(weight.t()))
        return product if bias is None else self.node("Add", product, self.constant(bias))

    def norm(self, x: str, layer: torch.nn.LayerNorm) -> str:
        """Normalised over the last axis."""
        weight, bias = self.constant(layer.weight), self.constant(layer.bias)
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=layer.eps)

    def reshape(self, x: str, *shape: int) -> str:
        """The same numbers in another shape."""
        return self.node("Reshape", x, self.constant(list(shape)))

    def model(self, name: str, inputs: dict[str, tuple[int, Shape]], outputs: dict[str, tuple[str, Shape]]) -> bytes:
        """The finished model.

        Args:
            name: of the graph.
            inputs: element type (of `onnx.TensorProto`) and shape by name.
            outputs: what is computed, and its shape, by name; all float32.
        """
        ends = [helper.make_node("Identity", [computed], [output]) for output, (computed, _) in outputs.items()]
        body = helper.make_graph(
            [*self.nodes, *ends],
            name,
            [helper.make_tensor_value_info(given, kind, shape) for given, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, shape) for o, (_, shape) in outputs.items()],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_DOMAIN, 1)]
        model: onnx.ModelProto = helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION)
        content: bytes = model.SerializeToString()
        return content
