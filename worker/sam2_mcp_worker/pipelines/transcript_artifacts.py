"""The files of a transcript as artifacts: one set per request, under the same addresses while it grows."""

from __future__ import annotations

import asyncio
import hashlib
import logging

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.pipelines.transcript import Transcript
from sam2_mcp_worker.pipelines.transcript_files import TRANSCRIPT_TYPES, transcript_files
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever the files look otherwise.
FILES_VERSION = 1

logger = logging.getLogger(__name__)


async def write_transcript(services: Services, transcript: Transcript, request_key: str) -> tuple[Artifact, ...]:
    """The files as of now, written only when something changed; none where nothing was said, or the disk is full."""
    if not transcript.said:
        return ()
    state = hashlib.sha256(f"{FILES_VERSION} {transcript!r}".encode("utf-8", "replace")).hexdigest()

    async def new_handles() -> dict[str, str]:
        return {suffix: services.artifacts.new_handle() for suffix in TRANSCRIPT_TYPES}

    handles = await services.cache.get_or_compute(cache_key("transcript_handles", request_key), new_handles)

    async def write() -> bool:
        await asyncio.to_thread(_write, services, transcript, handles, state)
        return True

    try:
        # Callers of one state at once share its writing.
        await services.cache.get_or_compute(
            cache_key("transcript", request_key, state), write, fresh=lambda _: _are_of(services, handles, state)
        )
    except OSError as error:  # the files are beside the result: that holds every word, too
        logger.warning("transcript not written: %s", error.strerror)
        return ()
    return tuple(found for suffix in TRANSCRIPT_TYPES if (found := services.artifacts.find(handles[suffix])))


def _are_of(services: Services, handles: dict[str, str], state: str) -> bool:
    """Whether all files are there and tell this state."""
    found = [services.artifacts.find(handles[suffix]) for suffix in TRANSCRIPT_TYPES]
    return all(one is not None and one.facts.get("state") == state for one in found)


def _write(services: Services, transcript: Transcript, handles: dict[str, str], state: str) -> None:
    stem = transcript.file_name.rsplit(".", 1)[0]
    for suffix, data in transcript_files(transcript).items():
        services.artifacts.put(
            data,
            name=f"{stem}-transcript.{suffix}",
            mime_type=TRANSCRIPT_TYPES[suffix],
            handle=handles[suffix],
            facts={"state": state},
        )
