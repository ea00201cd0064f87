"""Opens a network in ONNX Runtime, for a child process that shares two cores with another one."""

from __future__ import annotations

from pathlib import Path

import onnxruntime


def open_session(model: Path | bytes, *, threads: int, arena: bool = False) -> onnxruntime.InferenceSession:
    """A session on the CPU with this many threads, of a file or of the bytes of one.

    The arena is off: it keeps the peak of the largest tile for ever, +380 MB resident, and is no faster (measured).
    With inputs of one size its peak is small, and large products in it are 10 % faster (memory attention).
    Idle threads do not spin: they would take the second core from the other child.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = arena
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
