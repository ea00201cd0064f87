"""Decoded pictures on disk: raw RGB bytes that every process can map without decoding anything again.

A decoder child writes such a file once; OCR children map just the tile that they read. The format carries no
header, so there is nothing in it to parse: whoever hands the file on hands on its size too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sam2_mcp_worker.errors import WorkerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHANNELS = 3  # RGB, 8 bits each, rows from the top, no padding


@dataclass(frozen=True, slots=True)
class PixelFile:
    """A decoded picture: `path` holds `height_px * width_px * 3` bytes of RGB, row by row from the top."""

    path: Path
    width_px: int
    height_px: int

    def to_params(self) -> dict[str, Any]:
        """JSON form for a child task."""
        return {"path": str(self.path), "width_px": self.width_px, "height_px": self.height_px}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> PixelFile:
        """The inverse of `to_params`."""
        return cls(Path(params["path"]), int(params["width_px"]), int(params["height_px"]))

    def map_rgb(self) -> NDArray[np.uint8]:
        """The picture as a read-only `(height_px, width_px, 3)` uint8 array that is paged in on use.

        Raises:
            WorkerError: `pixels_unreadable`.
        """
        import numpy as np  # in children and tests only: the server process never touches pixels

        try:
            return np.memmap(self.path, dtype=np.uint8, mode="r", shape=(self.height_px, self.width_px, CHANNELS))
        except (OSError, ValueError) as error:
            raise WorkerError(
                "pixels_unreadable",
                f"the decoded picture of {self.width_px} x {self.height_px} px cannot be read",
                next_step="call again, so that it is decoded again",
                private=repr(error),
            ) from error

    def crop_rgb(self, rect_xyxy_px: tuple[int, int, int, int]) -> NDArray[np.uint8]:
        """A contiguous copy of the rectangle `(x0, y0, x1, y1)`, clipped to the picture."""
        import numpy as np

        x0, y0, x1, y1 = rect_xyxy_px
        return np.ascontiguousarray(self.map_rgb()[max(0, y0) : y1, max(0, x0) : x1])
