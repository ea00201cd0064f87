"""Tiny encoder and decoder pairs in ONNX with the signatures of real ones: the mask is what is bright in the picture.

They take milliseconds where a real encoder takes seconds, and what they answer can be computed by hand. A negative
point makes the mask blank.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

SIDE_PX = 64
CELLS = 16
OPSET = 17
IR_VERSION = 8
# Brightness 0-1 leaves the normalisation at about -2 to 2.4; ten times that makes edges hard.
GAIN = 10.0

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32


@dataclass(frozen=True)
class Pair:
    """Two files with their hashes."""

    encoder: Path
    decoder: Path

    def weights(self) -> dict[str, str]:
        """As `segmenter.child_config` takes them."""
        return {
            "encoder": str(self.encoder),
            "encoder_sha256": hashlib.sha256(self.encoder.read_bytes()).hexdigest(),
            "decoder": str(self.decoder),
            "decoder_sha256": hashlib.sha256(self.decoder.read_bytes()).hexdigest(),
        }


def value(name: str, shape: list[Any], kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> Path:
    """Write a graph; constants are scalars or lists of floats."""
    tensors = [
        helper.make_tensor(
            name, FLOAT, [len(data)] if isinstance(data, list) else [], data if isinstance(data, list) else [data]
        )
        for name, data in constants.items()
    ]
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def encoder(path: Path, outputs: tuple[str, ...] = ("output",), shape: list[Any] | None = None) -> Path:
    """Mean brightness of each 4 x 4 px of a `(1, 3, 64, 64)` picture, once for every name in `outputs`."""
    nodes = [
        helper.make_node("AveragePool", ["picture"], ["pooled"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("ReduceMean", ["pooled"], ["grey"], axes=[1], keepdims=1),
        *(helper.make_node("Identity", ["grey"], [name]) for name in outputs),
    ]
    given = [value(name, [1, 1, CELLS, CELLS]) for name in outputs]
    return save(path, nodes, [value("picture", shape or ["batch", 3, SIDE_PX, SIDE_PX])], given, {})


def decoder(
    path: Path,
    *,
    embeddings: tuple[str, ...] = ("image_embeddings",),
    extra: tuple[str, ...] = ("mask_input", "has_mask_input", "orig_im_size"),
    labels: int = FLOAT,
    scores: list[float] | None = None,
    outputs: tuple[str, str] = ("low_res_masks", "iou_predictions"),
) -> Path:
    """Gives as many masks as `scores`; mask i is bright by i steps less, so that tests see which one was taken."""
    scores = scores or [0.9]
    shapes = {"mask_input": [1, 1, CELLS, CELLS], "has_mask_input": [1], "orig_im_size": [2]}
    inputs = [
        *(value(name, [1, 1, CELLS, CELLS]) for name in embeddings),
        value("point_coords", [1, "n", 2]),
        value("point_labels", [1, "n"], labels),
        *(value(name, shapes[name]) for name in extra),
    ]
    nodes = [
        helper.make_node("Cast", ["point_labels"], ["labels"], to=FLOAT),
        helper.make_node("Equal", ["labels", "zero"], ["negative"]),
        helper.make_node("Cast", ["negative"], ["negative_as_float"], to=FLOAT),
        helper.make_node("ReduceMax", ["negative_as_float"], ["any_negative"], keepdims=0),
        helper.make_node("Mul", ["any_negative", "far"], ["pushed_down"]),
        helper.make_node("Mul", [embeddings[0], "gain"], ["strong"]),
        helper.make_node("Sub", ["strong", "pushed_down"], ["first"]),
        *(helper.make_node("Sub", ["first", f"step{i}"], [f"mask{i}"]) for i in range(len(scores))),
        helper.make_node("Concat", [f"mask{i}" for i in range(len(scores))], [outputs[0]], axis=1),
        helper.make_node("Unsqueeze", ["score_values", "axis"], [outputs[1]]),
    ]
    constants = {"zero": 0.0, "far": 1000.0, "gain": GAIN, "score_values": scores}
    constants |= {f"step{i}": float(i) for i in range(len(scores))}
    given = [value(outputs[0], [1, len(scores), CELLS, CELLS]), value(outputs[1], [1, len(scores)])]
    axis = helper.make_node("Constant", [], ["axis"], value=helper.make_tensor("axis", TensorProto.INT64, [1], [0]))
    return save(path, [axis, *nodes], inputs, given, constants)


def tiny_pair(folder: Path) -> Pair:
    """A pair with the standard signature."""
    return Pair(encoder(folder / "encoder.onnx"), decoder(folder / "decoder.onnx"))
