"""What a tracking remembers: per object the prompt's frame and the last ones, and the way of that to a file and back.

Owns which frames are kept and how the file is checked. It knows no network: arrays come in and go out. For child
processes and tests only.

Only what a later frame can look at is kept, so the size does not grow with the clip: at most 7 memories of 64 channels
and 16 pointers of 256 an object, in float32. That is 256 KB a remembered frame and object at 512 px, 1.8 MB an object
in all; 1.4 MB at 448 px.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from sam2_mcp_worker.disk import write_whole
from sam2_mcp_worker.engines.ports import Quality
from sam2_mcp_worker.errors import WorkerError

Array = NDArray[np.float32]

# As SAM 2 was trained: the prompt's frame and six before the current one, and pointers of the prompt's and fifteen.
PAST_MEMORIES = 6
PAST_POINTERS = 15
# Raise it when the file changes: another version's is refused, and the tracking begins anew.
FORMAT_VERSION = 1
HEADER_KEY = "sam2-mcp-track"
# An object's record takes 2 MB; nothing near this was written here, and a hostile file must not fill the memory.
MAX_FILE_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class FrameMemory:
    """One frame in the memory of one object.

    Args:
        features: `(tokens, 64)`, what the memory encoder made of frame and mask; None = too long ago to be looked at.
        pointer: `(256,)`, the decoder's summary of the object.
    """

    features: Array | None
    pointer: Array


@dataclass(slots=True)
class ObjectMemory:
    """The prompt's frame and the last ones, the newest first."""

    prompt: FrameMemory
    past: deque[FrameMemory] = field(default_factory=lambda: deque(maxlen=PAST_POINTERS))

    def remember(self, frame: FrameMemory, past_memories: int) -> None:
        """Add the newest frame and let go what no later frame looks at."""
        self.past.appendleft(frame)
        if len(self.past) > past_memories:
            self.past[past_memories] = FrameMemory(None, self.past[past_memories].pointer)

    def features(self) -> list[Array]:
        """The prompt's frame first, then the newest, the one before, and so on."""
        return [frame.features for frame in (self.prompt, *self.past) if frame.features is not None]

    def pointers(self) -> list[Array]:
        """In the same order, but of more frames."""
        return [frame.pointer for frame in (self.prompt, *self.past)]


@dataclass(slots=True)
class TrackSession:
    """One tracking: objects in the order of their prompts, and how many frames it has seen, the prompt's included."""

    quality: Quality
    objects: list[ObjectMemory]
    frames: int = 1

    @property
    def nbytes(self) -> int:
        """Bytes once the bank is full: known from the first frame on, so that a bound is met or refused then."""
        prompts = [memory.prompt for memory in self.objects]
        full = [(f.features.nbytes if f.features is not None else 0, f.pointer.nbytes) for f in prompts]
        return sum((1 + PAST_MEMORIES) * features + (1 + PAST_POINTERS) * pointer for features, pointer in full)


def save_session(session: TrackSession, path: Path, *, identity: str) -> None:
    """Write everything needed to go on, as plain tensors; the file is whole or absent.

    Raises:
        OSError: the disk refuses.
    """
    tensors: dict[str, Array] = {}
    for number, memory in enumerate(session.objects):
        tensors[f"{number}.features"] = np.stack(memory.features())
        tensors[f"{number}.pointers"] = np.stack(memory.pointers())
    header = {
        "version": FORMAT_VERSION,
        "identity": identity,
        "quality": session.quality,
        "frames": session.frames,
        "objects": len(session.objects),
    }
    header["digest"] = _digest(header, tensors)
    write_whole(path, safetensors.numpy.save(tensors, {HEADER_KEY: json.dumps(header)}))


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """What the memories of one quality look like: tokens of a frame, and how many past frames are looked at."""

    tokens: int
    past_memories: int


def load_session(path: Path, identity: str, shapes: Mapping[Quality, MemoryShape]) -> TrackSession:
    """Read a saved session.

    Args:
        path: as given to `save_session`.
        identity: of the weights in use; a memory of other weights means nothing to them.
        shapes: of each quality.

    Raises:
        WorkerError: `track_state_lost` for a file that is missing, damaged, of other weights or another version.
    """
    try:
        header, tensors = _read(path)
        if header["version"] != FORMAT_VERSION or header["identity"] != identity:
            raise state_lost("it was saved with other weights or another version")
        if header.pop("digest") != _digest(header, tensors):
            raise state_lost("its file is damaged")
        return _session(header, tensors, shapes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
        raise state_lost("its file is missing or damaged", private=repr(error)) from error


def state_lost(reason: str, *, private: str = "") -> WorkerError:
    """The one error for a memory that is not there any more."""
    return WorkerError(
        "track_state_lost",
        f"the memory of this tracking is gone: {reason}",
        rule="it lives in the engine between frames and is lost when that restarts or needs the room",
        next_step="track again from the prompts",
        private=private,
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path.stat().st_size} bytes")
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads((file.metadata() or {})[HEADER_KEY])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)


def _session(header: dict[str, Any], tensors: dict[str, Array], shapes: Mapping[Quality, MemoryShape]) -> TrackSession:
    shape = shapes[header["quality"]]
    objects = [
        _object(tensors[f"{number}.features"], tensors[f"{number}.pointers"], shape)
        for number in range(int(header["objects"]))
    ]
    return TrackSession(header["quality"], objects, int(header["frames"]))


def _object(features: Array, pointers: Array, shape: MemoryShape) -> ObjectMemory:
    known = 1 + min(len(pointers) - 1, shape.past_memories)
    if features.shape[:2] != (known, shape.tokens) or not 1 <= len(pointers) <= 1 + PAST_POINTERS:
        raise ValueError(f"shapes {features.shape} {pointers.shape}")
    seen: Iterable[Array | None] = [*features, *[None] * (len(pointers) - known)]
    first, *rest = (FrameMemory(f, p) for f, p in zip(seen, pointers, strict=True))
    return ObjectMemory(first, deque(rest, maxlen=PAST_POINTERS))


def _digest(header: dict[str, Any], tensors: dict[str, Array]) -> str:
    """SHA-256 over header and tensors: safetensors itself would not notice a flipped bit."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode("utf-8"))
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()
