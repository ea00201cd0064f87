"""Reads one line with Tesseract's LSTM. Owns the Tesseract handle; knows nothing of pictures beyond one crop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import tesserocr
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.text_height import Symbol

PAPER_MARGIN_PX = 10  # white around the crop: Tesseract takes ink at the border for a frame
# Page segmentation 7 first finds the line's baseline, which halves the errors; now and then it takes a line for
# noise and gives nothing. 13 takes the crop as it is.
ONE_LINE, RAW_LINE = 7, 13
DOUBTFUL = 0.6  # mean confidence below which the second way is tried: right readings have 0.85 and more
LSTM_ONLY = 1


@dataclass(frozen=True, slots=True)
class LineText:
    """A reading of one crop."""

    symbols: tuple[Symbol, ...]
    confidence: float

    @property
    def text(self) -> str:
        return "".join((" " if i and s.starts_word else "") + s.text for i, s in enumerate(self.symbols))


class LineReader:
    """One Tesseract instance. Not shared between threads."""

    def __init__(self, tessdata_dir: Path, languages: Sequence[str]) -> None:
        missing = [name for name in languages if not (tessdata_dir / f"{name}.traineddata").is_file()]
        if missing:
            raise WorkerError(
                "language_data_missing",
                f"no {', '.join(f'{name}.traineddata' for name in missing)} in the directory set for language data",
                rule="the local reader needs one file a language",
                next_step="install Debian's tesseract-ocr-kor, or set SAM2_MCP_TESSDATA_DIR to where the files are",
                private=str(tessdata_dir),
            )
        # 300 dpi keeps Tesseract from guessing a resolution, and from a line on stderr for each crop.
        variables = {"user_defined_dpi": "300"}
        self._api = tesserocr.PyTessBaseAPI(
            path=str(tessdata_dir), lang="+".join(languages), oem=LSTM_ONLY, variables=variables
        )

    def read(self, gray: NDArray[np.uint8]) -> LineText:
        """The text of a crop with dark ink on white; empty when there is none."""
        first = self._read(gray, ONE_LINE)
        if first.confidence >= DOUBTFUL:
            return first
        return max(first, self._read(gray, RAW_LINE), key=lambda reading: reading.confidence)

    def _read(self, gray: NDArray[np.uint8], mode: int) -> LineText:
        m = PAPER_MARGIN_PX
        framed = cv2.copyMakeBorder(gray, m, m, m, m, cv2.BORDER_CONSTANT, value=255)
        height, width = framed.shape
        self._api.SetPageSegMode(mode)
        self._api.SetImageBytes(framed.tobytes(), width, height, 1, width)
        text = " ".join(self._api.GetUTF8Text().split())
        if not text:
            return LineText((), 0.0)
        return LineText(tuple(_placed(text, self._boxes())), self._api.MeanTextConf() / 100)

    def _boxes(self) -> list[tuple[str, int, int]]:
        level = tesserocr.RIL.SYMBOL
        return [
            (entry.GetUTF8Text(level), box[0] - PAPER_MARGIN_PX, box[2] - PAPER_MARGIN_PX)
            for entry in tesserocr.iterate_level(self._api.GetIterator(), level)
            if (box := entry.BoundingBox(level))
        ]


def _placed(text: str, boxes: Sequence[tuple[str, int, int]]) -> Iterator[Symbol]:
    """The characters of `text` with their columns; the boxes know no spaces, since each Hangul is a word to them."""
    at = 0
    for symbol, x0, x1 in boxes:
        start = text.find(symbol, at)
        if start >= 0:
            yield Symbol(symbol, x0, x1, starts_word=text[at:start] == " ")
            at = start + len(symbol)
