"""What a tracking needs to go on after its call, or after the worker: one folder per request below `root`.

Owns the folders and their record (JSON, whole or absent). What the record says, and what else lies in the folder
(memory of the engine, small pictures of frames), is the pipeline's.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import touch, write_whole

RECORD = "track.json"

logger = logging.getLogger(__name__)


class TrackStore:
    """Folders by key (hexadecimal, see `result_cache.cache_key`)."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, key: str) -> Path:
        """The folder of a request, which is made if need be."""
        folder = self._root / key
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def load(self, key: str) -> Any | None:
        """The record, or None. A damaged one counts as absent and is removed. Counts as a use of the folder."""
        folder = self._root / key
        try:
            value = json.loads((folder / RECORD).read_bytes())
        except OSError:
            return None
        except ValueError:
            logger.warning("removed a damaged record of a tracking")
            (folder / RECORD).unlink(missing_ok=True)
            return None
        touch(folder)
        return value

    def save(self, key: str, record: Any) -> None:
        """Replace the record.

        Raises:
            OSError: the disk refuses.
        """
        folder = self.folder(key)
        write_whole(folder / RECORD, json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii"))
        touch(folder)

    def entries(self) -> Iterator[Path]:
        """All folders, for the sweep."""
        return self._root.glob("*")
