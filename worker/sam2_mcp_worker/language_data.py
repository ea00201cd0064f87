"""Where the local reader's language data lie: one traineddata file a language."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sam2_mcp_worker.errors import WorkerError

# Where Debian, Fedora, Homebrew and `make setup` put *.traineddata. The first that holds the languages is used.
TESSDATA_CANDIDATES = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/opt/homebrew/share/tessdata",
    "/usr/local/share/tessdata",
)


def find_language_data(folder: Path | None, languages: Sequence[str], prefix: str | None) -> Path:
    """The folder that holds the traineddata of all languages: `folder` or none where it is given, else the first of
    `prefix` (tesseract's own variable), beside Python, and the usual ones.

    Raises:
        WorkerError: language_data_missing; the text says how to install them.
    """
    beside_python = str(Path(sys.prefix) / "share" / "tessdata")
    usual = [*([prefix] if prefix else []), beside_python, *TESSDATA_CANDIDATES]
    for candidate in [folder] if folder else map(Path, usual):
        if all((candidate / f"{language}.traineddata").is_file() for language in languages):
            return candidate
    missing = ", ".join(f"{language}.traineddata" for language in languages)
    raise WorkerError(
        "language_data_missing",
        f"{missing} not found in {folder or 'the usual folders'}",
        rule="the local OCR needs one traineddata file per language",
        next_step="run `make setup`, or `apt-get install tesseract-ocr-kor`, or set SAM2_MCP_TESSDATA_DIR",
    )
