"""What a pipeline may ask of an engine. Engines are chosen by settings; pipelines know only these Protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import TileLimit

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of the whole picture, origin top left, x1 and y1 exclusive."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text as it was read.

    `box_xyxy_px` is the axis-aligned box in the whole picture; `height_px` the height of the text itself (across
    the reading direction, so a tilted line is not taller); `confidence` 0-1.
    """

    text: str
    box_xyxy_px: Box
    height_px: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Region:
    """Something that bears one of the labels that were asked for.

    `text_height_px` is the size of the smallest text in it, None where it holds none.
    """

    label: str
    box_xyxy_px: Box
    confidence: float
    text_height_px: float | None = None


@dataclass(frozen=True, slots=True)
class TileReading:
    """What one tile gave: its lines, and boxes of ink that no line explains (seen, but not read).

    `regions` is None where nobody looked for any, which is not the same as none found. `truncated` says that the
    engine's answer was cut: what it did not come to is among `undetected_ink`. `again` says why another attempt may
    give more (the local engine stood in, or time ran out); such a reading is delivered, but not served from the cache.
    `stood_in` says why the local engine read this tile instead of the provider that was asked; it looks for no regions.
    `dropped` counts items of the answer that made no sense (see `Sight`), `invented` lines that were left out since
    there is bare paper where they were said to stand.
    """

    lines: tuple[TextLine, ...]
    undetected_ink: tuple[Box, ...]
    regions: tuple[Region, ...] | None = None
    truncated: bool = False
    again: str = ""
    stood_in: str = ""
    dropped: int = 0
    invented: int = 0


class TextReader(Protocol):
    """Reads printed text. All coordinates are of the whole picture, never of the tile."""

    @property
    def identity(self) -> str:
        """Name, version and languages: part of every cache key, so that a new engine never serves old readings."""
        ...

    @property
    def tile_limit(self) -> TileLimit:
        """How large a tile may be, and how far neighbours overlap."""
        ...

    @property
    def tiles_in_flight(self) -> int:
        """How many tiles of one picture may be under way at once."""
        ...

    @property
    def costs_money(self) -> bool:
        """Whether every tile read is worth keeping, since reading it again is paid for again."""
        ...

    async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
        """Find and read all lines in one rectangle.

        Raises:
            WorkerError: the engine failed, crashed or ran out of time on this tile.
        """
        ...

    async def read_boxes(
        self, pixels: PixelFile, boxes_xyxy_px: list[Box], *, job: str, timeout_s: float
    ) -> list[TextLine]:
        """Read lines whose boxes are already known; result i belongs to box i.

        An empty text with confidence 1 says that nothing is printed there, with 0 that it could not be read.
        """
        ...


VisionModel = Literal["fast", "accurate"]
"""Which of the provider's two models is asked; their names are settings."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a look at a picture is for: its text, regions of these labels (a closed list), or both.

    `definitions[i]` says for the prompt what `labels[i]` covers, empty where the label says it all; either none is
    given or one for each label. They decide what is found, so they belong into cache keys like the labels.
    """

    text: bool
    labels: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TilePicture:
    """One tile as an encoded file, at its full resolution and within the provider's limits."""

    path: Path
    mime_type: str
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What a vision provider saw; all boxes in pixels of the tile, inside it.

    `cut` says why the answer is not whole (`tokens`, `time`, `connection`), empty when it is. Of a cut answer only
    items that were certainly complete are kept. `dropped` counts items that were thrown away because their box, label
    or confidence made no sense: what they stood for is not known to be absent.
    """

    lines: tuple[TextLine, ...]
    regions: tuple[Region, ...]
    cut: Literal["", "tokens", "time", "connection"] = ""
    dropped: int = 0


class VisionProvider(Protocol):
    """Reads and finds by a language model that sees. Asking costs money, so one only exists where its key is set."""

    def identity(self, model: VisionModel) -> str:
        """Provider, model and version of prompt and schema: part of every cache key."""
        ...

    @property
    def trouble(self) -> WorkerError | None:
        """Why asking is useless now (wrong key, the day's cap is reached ...), None when it is not."""
        ...

    def trouble_with(self, model: VisionModel) -> WorkerError | None:
        """Why asking this model is useless now; the other one may be well."""
        ...

    @property
    def where(self) -> str:
        """The host that pictures are sent to."""
        ...

    def status(self) -> dict[str, Any]:
        """What get_status tells: models, requests under way, today's costs, trouble. Reads no disk, asks nobody."""
        ...

    async def start(self) -> None:
        """Look up costs, and in the background the models; does not wait for the network."""
        ...

    async def close(self) -> None:
        """End what runs in the background, and the connections."""
        ...

    async def look(self, picture: TilePicture, wanted: Wanted, *, model: VisionModel, deadline: Deadline) -> Sight:
        """Ask once, with retries that fit before the deadline. What it costs is told to `spending.spend`.

        Text that arrived before the deadline is kept: the sight then is `cut` by `time`.

        Raises:
            VisionError: refused, overloaded, too large, wrong key, cap reached, unreachable, no usable answer.
        """
        ...


Quality = Literal["accurate", "balanced", "fast"]
"""How much time a picture or frame is worth; what each changes is the engine's business (docs/performance.md)."""

# Decoding more prompts in one go is not faster (reference/sam.md 3b), and a deadline check fits between chunks.
PROMPTS_PER_CHUNK = 4


@dataclass(frozen=True, slots=True)
class ObjectPrompt:
    """What marks one object: a box, points, or both, in pixels of the whole picture.

    `points` are `(x, y, positive)`; a negative point says what does not belong to the object.
    """

    box_xyxy_px: Box | None = None
    points: tuple[tuple[int, int, bool], ...] = ()

    def to_params(self) -> dict[str, Any]:
        """JSON form for a child task."""
        return {"box": list(self.box_xyxy_px) if self.box_xyxy_px else None, "points": [list(p) for p in self.points]}


@dataclass(frozen=True, slots=True)
class Polygon:
    """One outline and the holes in it: rings of `(x, y)` in pixels, not closed by a repeated first point.

    Vertices are corners of pixels, as those of a box are: one pixel is a square, and x may be the picture's width.
    """

    outer: tuple[tuple[int, int], ...]
    holes: tuple[tuple[tuple[int, int], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectMask:
    """The mask of one object. A blank one has no box and no file, and is a result like any other.

    `mask_path` is an 8-bit grey PNG of exactly `box_xyxy_px` (255 = inside), so that a small object of a huge picture
    costs little. `stability` is the IoU of the masks at a raised and a lowered threshold. `polygon_tolerance_px` is
    how far the polygons may lie off the mask's edge.
    """

    box_xyxy_px: Box | None
    mask_path: Path | None
    area_px: int
    predicted_iou: float
    stability: float
    touches_border: bool
    polygons: tuple[Polygon, ...]
    polygon_tolerance_px: float

    @property
    def blank(self) -> bool:
        """Whether nothing was found."""
        return self.box_xyxy_px is None


class Segmenter(Protocol):
    """Cuts objects out of pictures. Each method is one short step, so that callers can check their deadline between.

    A step that was begun is finished even when its caller is cancelled: killing the child would lose its caches.
    """

    @property
    def identity(self) -> str:
        """Engine, weights and version: part of every cache key."""
        ...

    async def encode(
        self, pixels: PixelFile, content_key: str, *, quality: Quality, job: str, timeout_s: float
    ) -> None:
        """Embed the picture, unless that is cached under `content_key` (hash of its content) and quality.

        Raises:
            WorkerError: the engine failed, crashed or ran out of time.
        """
        ...

    async def masks(
        self,
        pixels: PixelFile,
        content_key: str,
        prompts: Sequence[ObjectPrompt],
        *,
        quality: Quality,
        mask_dir: Path,
        job: str,
        timeout_s: float,
    ) -> list[ObjectMask]:
        """The masks of at most `PROMPTS_PER_CHUNK` prompts; result i belongs to prompt i. PNGs go below `mask_dir`.

        A picture that is not embedded any more is embedded again. In a huge one each prompt may need an embedding of
        its own, so that only one prompt is a short step (`embed_windows.prompts_per_step`).

        Raises:
            WorkerError: as `encode`.
        """
        ...


class Tracker(Protocol):
    """Follows objects through frames in order; the memory of each session stays in the engine between the steps."""

    @property
    def identity(self) -> str:
        """Engine, weights and version: part of every cache key."""
        ...

    async def start(
        self,
        session: str,
        frame: PixelFile,
        prompts: Sequence[ObjectPrompt],
        *,
        quality: Quality,
        mask_dir: Path,
        job: str,
        timeout_s: float,
    ) -> list[ObjectMask]:
        """Begin a session on its first frame; mask i belongs to prompt i. An existing session is replaced."""
        ...

    async def step(
        self, session: str, frame: PixelFile, *, mask_dir: Path, job: str, timeout_s: float
    ) -> list[ObjectMask]:
        """The masks in the next frame. A lost object is a blank mask.

        Raises:
            WorkerError: `track_state_lost` when the engine was restarted or dropped the session: `restore` it.
        """
        ...

    async def save(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        """Write the session's memory to `path` (plain tensors), so that a restart loses nothing."""
        ...

    async def restore(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        """Take up a saved session; `track_state_lost` when the file is missing, damaged or of other weights."""
        ...

    async def prepare(self, quality: Quality, *, job: str, timeout_s: float) -> None:
        """Open what this quality needs, unless that is done: else a first frame takes seconds longer than others."""
        ...

    async def drop(self, session: str, *, job: str) -> None:
        """Forget a session; unknown ones are nothing to complain of."""
        ...
