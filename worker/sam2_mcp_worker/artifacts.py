"""Files made for people: overlay pictures and reports, behind random handles, with a lifetime.

An artifact is a folder `<root>/<handle>/` with the data and its description. Whoever knows the handle (and the
worker's token) may read it; handles cannot be guessed.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import touch, write_whole
from sam2_mcp_worker.errors import WorkerError

HANDLE = re.compile(r"art_[A-Za-z0-9_-]{22}\Z")
URI_PREFIX = "artifact://"
# In `facts`: the handle of the file that the artifact tells something of. As a source it stands for that file.
INSPECTED = "inspected"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A stored file: `handle`, file `name`, MIME type and size in bytes.

    `facts` is JSON that a tool needs which is given the handle: of a mask `kind` "mask", `width_px`, `height_px`,
    `box_xyxy_px` and `source_sha256`, the hash of the picture that it was cut from; of what an inspection made of a
    file INSPECTED.
    """

    handle: str
    name: str
    mime_type: str
    size_bytes: int
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        """Its address as an MCP resource."""
        return URI_PREFIX + self.handle


class Artifacts:
    """The artifact store below `root`."""

    def __init__(self, root: Path, retention_h: float) -> None:
        self._root = root
        self._retention_h = retention_h

    def new_handle(self) -> str:
        """A handle with 132 random bits."""
        return f"art_{secrets.token_urlsafe(16)}"

    def put(
        self, data: bytes, *, name: str, mime_type: str, handle: str | None = None, facts: dict[str, Any] | None = None
    ) -> Artifact:
        """Store `data`; a given handle is overwritten, which keeps the address of a report that grows."""
        artifact = Artifact(handle or self.new_handle(), name, mime_type, len(data), facts or {})
        folder = self._folder(artifact.handle)
        write_whole(folder / "data", data)
        write_whole(folder / "about.json", json.dumps(asdict(artifact)).encode("utf-8"))
        return artifact

    def adopt(
        self, path: Path, *, name: str, mime_type: str, handle: str | None = None, facts: dict[str, Any] | None = None
    ) -> Artifact:
        """Store a whole file by moving it here: for what is too large to pass through memory, such as a video."""
        artifact = Artifact(handle or self.new_handle(), name, mime_type, path.stat().st_size, facts or {})
        folder = self._folder(artifact.handle)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(path, folder / "data")
        write_whole(folder / "about.json", json.dumps(asdict(artifact)).encode("utf-8"))
        return artifact

    def discard(self, handle: str) -> None:
        """Forget an artifact at once; an unknown one is nothing to complain of."""
        shutil.rmtree(self._folder(handle), ignore_errors=True)

    def get(self, handle: str) -> tuple[Artifact, Path]:
        """The description and the data's path.

        Raises:
            WorkerError: code `artifact_unknown`: malformed, expired, or never existed.
        """
        folder = self._folder(handle)
        artifact = self._about(folder.name)
        if artifact is None:
            raise self._unknown(handle)
        touch(folder)
        return artifact, folder / "data"

    def find(self, handle: str | None) -> Artifact | None:
        """The artifact's description; None where it was not made, or is not there any more. Counts as a use."""
        try:
            return self.get(handle)[0] if handle is not None else None
        except WorkerError:
            return None

    def holds(self, handle: str | None) -> bool:
        """Whether the artifact is still there; counts as a use."""
        return self.find(handle) is not None

    def newest(self, limit: int, before: tuple[int, str] | None = None) -> list[tuple[tuple[int, str], Artifact]]:
        """At most `limit` artifacts, the last stored first, each with its place; `before` is a place to go on from.

        Reading one is no use of it: looking through the list keeps nothing alive.
        """
        places = []
        for folder in self.entries():
            with suppress(OSError):  # swept meanwhile
                places.append(((folder / "about.json").stat().st_mtime_ns, folder.name))
        found = []
        for place in sorted(places, reverse=True):
            if (before is None or place < before) and (artifact := self._about(place[1])) is not None:
                found.append((place, artifact))
                if len(found) == limit:
                    break
        return found

    def _about(self, handle: str) -> Artifact | None:
        try:
            return Artifact(**json.loads((self._root / handle / "about.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def entries(self) -> Iterator[Path]:
        """All stored folders, for the sweep."""
        return self._root.glob("art_*")

    def _folder(self, handle: str) -> Path:
        if not HANDLE.match(handle):
            raise self._unknown(handle)
        return self._root / handle

    def _unknown(self, handle: str) -> WorkerError:
        return WorkerError(
            "artifact_unknown",
            f"no artifact {handle[:40]!r}",
            rule=f"artifacts live {self._retention_h:g} h after their last use",
            next_step="call the tool that made it again",
        )
