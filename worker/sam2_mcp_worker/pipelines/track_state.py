"""What is known of one tracking between its calls, and its form on disk. Knows neither engines nor videos.

A tracking goes through its range in propagations: the first takes the frames that were asked for, each further one the
frames in the middle between those that were tracked. Every propagation begins at the prompts; its memory can be saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject

# Raise when the meaning of a record changes: old ones are then not taken up.
STATE_FORMAT = 1
_PLAIN = ("propagation", "pool", "complete", "current", "memory", "reached", "frame_s")


@dataclass(slots=True)
class TrackState:
    """Progress of one request.

    `propagation` counts from 1; `pool` are its frames if they had to be chosen (None: the first, whose frames follow
    from the request). `memory` names the file of the engine's memory after the frame `current`; without one the
    propagation has to begin at the prompts. `frames` and `failed` are by index of the frame in the video, over all
    propagations; `own` are the tracked frames of this one, `reached` is its last that is tracked, failed or passed
    over. `frame_s` is the pace that was seen last, `thumbnail_px` the size of the small pictures of the frames.
    """

    propagation: int = 1
    pool: list[int] | None = None
    complete: bool = False
    current: int | None = None
    memory: str | None = None
    reached: int | None = None
    frames: dict[int, TrackedFrame] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)
    frame_s: float | None = None
    thumbnail_px: tuple[int, int] | None = None

    def begin_propagation(self, pool: Iterable[int]) -> None:
        """The next propagation, over other frames; what was tracked stays."""
        self.propagation += 1
        self.pool = sorted(pool)
        self.complete = False
        self.current = self.memory = self.reached = None
        self.own = set()

    def forget_memory(self) -> None:
        """The engine's memory is gone: this propagation has to begin at the prompts."""
        self.current = self.memory = None

    @property
    def replay(self) -> list[int]:
        """Frames that are tracked, but not in the saved memory: to be tracked again before the propagation goes on."""
        return sorted(index for index in self.own if self.current is None or index > self.current)

    def snapshot(self) -> TrackState:
        """A copy that later progress does not change."""
        return replace(
            self,
            frames=dict(self.frames),
            failed=dict(self.failed),
            own=set(self.own),
        )

    def to_record(self) -> dict[str, Any]:
        """The form for the disk."""
        record = asdict(self)
        record |= {"format": STATE_FORMAT, "own": sorted(self.own)}
        record["frames"] = [[index, frame] for index, frame in sorted(record["frames"].items())]
        record["failed"] = sorted(self.failed.items())
        return record

    @classmethod
    def from_record(cls, record: Any) -> TrackState | None:
        """The inverse; None for no record, one of another format, or a damaged one."""
        try:
            if record is None or record["format"] != STATE_FORMAT:
                return None
            return cls(
                **{name: record[name] for name in _PLAIN},
                frames={int(index): _frame(frame) for index, frame in record["frames"]},
                failed={int(index): str(reason) for index, reason in record["failed"]},
                own=set(record["own"]),
                thumbnail_px=tuple(record["thumbnail_px"]) if record["thumbnail_px"] else None,
            )
        except (KeyError, TypeError, ValueError):
            return None


def _frame(fields: dict[str, Any]) -> TrackedFrame:
    objects = []
    for one in fields["objects"]:
        box = one["box_xyxy_px"]
        objects.append(TrackedObject(**{**one, "box_xyxy_px": tuple(box) if box else None}))
    return TrackedFrame(fields["time_s"], tuple(objects))
