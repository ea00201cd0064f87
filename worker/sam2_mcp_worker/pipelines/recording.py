"""What a recording is, and its stretches with their pieces: looked up once per file, then remembered on disk.

Sound itself is only on disk while somebody listens to it: a stretch of which every piece was heard before is not
decoded again.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.audio import (
    SOUND_VERSION,
    DamagedSpan,
    SilentSpan,
    SoundFacts,
    SoundPiece,
    SoundStretch,
    probe_sound,
    scan_sound,
)
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class Recording:
    """A stored file with sound, and the facts of its sound."""

    stored: StoredFile
    facts: SoundFacts


async def describe_sound(services: Services, stored: StoredFile) -> Recording:
    """The recording in a file.

    Raises:
        WorkerError: whatever `probe_sound` says of a file without sound, too long or damaged.
    """
    settings = services.settings

    async def compute() -> dict[str, Any]:
        facts = await probe_sound(
            services.scanner,
            stored.path,
            max_s=settings.max_video_s,
            timeout_s=settings.step_timeout_s,
            job=stored.sha256,
        )
        return asdict(facts)

    key = cache_key("sound", SOUND_VERSION, stored.sha256, settings.max_video_s)
    return Recording(stored, SoundFacts(**await services.cache.get_or_compute(key, compute)))


class StretchSound:
    """One stretch of a recording: how it is cut, and the sound of its pieces as long as `folder` is there."""

    def __init__(self, services: Services, recording: Recording, number: int, folder: Path, job: str) -> None:
        self._services = services
        self._recording = recording
        self._number = number
        self._folder = folder
        self._job = job
        self._scanning = asyncio.Lock()
        self._scanned: SoundStretch | None = None

    async def cuts(self) -> SoundStretch:
        """How it is cut; its pieces may lie nowhere yet.

        Raises:
            WorkerError: the scan child crashed, hung, or cannot open the file.
        """
        key = cache_key("sound_stretch", SOUND_VERSION, self._recording.stored.sha256, self._number)
        known = await asyncio.to_thread(self._services.cache.get, key)
        if known is not None:
            return _from_json(known)
        scanned = await self._scan()
        await asyncio.to_thread(self._services.cache.put, key, _to_json(scanned))
        return scanned

    async def piece(self, index: int) -> Path:
        """The sound of a piece as a WAV.

        Raises:
            WorkerError: as `cuts`.
        """
        pieces = (await self._scan()).pieces
        if index >= len(pieces):  # only when the cutting was changed and SOUND_VERSION was not
            raise WorkerError("sound_changed", "this stretch was cut otherwise before", next_step="call again")
        return pieces[index].path

    async def _scan(self) -> SoundStretch:
        async with self._scanning:
            if self._scanned is None:
                self._scanned = await scan_sound(
                    self._services.scanner,
                    self._recording.stored.path,
                    self._recording.facts,
                    self._number,
                    self._folder,
                    timeout_s=self._services.settings.step_timeout_s,
                    job=self._job,
                )
        return self._scanned


def _to_json(stretch: SoundStretch) -> dict[str, Any]:
    fields = asdict(stretch)
    for piece in fields["pieces"]:
        del piece["path"]
    return fields


def _from_json(fields: dict[str, Any]) -> SoundStretch:
    return SoundStretch(
        fields["number"],
        fields["start_s"],
        fields["end_s"],
        tuple(_piece(piece) for piece in fields["pieces"]),
        tuple(SilentSpan(**span) for span in fields["silent"]),
        tuple(DamagedSpan(**span) for span in fields["damaged"]),
        fields["goes_on"],
    )


def _piece(fields: dict[str, Any]) -> SoundPiece:
    return SoundPiece(**fields | {"path": Path(), "levels_dbfs": tuple(fields["levels_dbfs"])})
