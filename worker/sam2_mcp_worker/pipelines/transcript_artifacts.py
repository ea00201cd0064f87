"""The files of a transcript as artifacts: one set per request, under the same addresses while it grows."""

from __future__ import annotations

import asyncio
import hashlib
import logging

from sam2_mcp_worker.artifacts import INSPECTED, Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.pipelines.transcript import Transcript
from sam2_mcp_worker.pipelines.transcript_files import TRANSCRIPT_TYPES, transcript_files
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# Raise it whenever the files look otherwise.
FILES_VERSION = 2
# Of the time kept free for the answer: the rest is for packing and sending it.
MARGIN_SHARE = 0.4

logger = logging.getLogger(__name__)


async def write_transcript(
    services: Services, stored: StoredFile, transcript: Transcript, request_key: str, deadline: Deadline
) -> tuple[Artifact, ...]:
    """The files as of now, written only when something changed; none where nothing was said.

    Waits for the writing until the deadline and a part of the margin behind it; what takes longer is written on, and
    what is returned are the addresses. On a full disk those come that are there; each tells its own coverage.
    """
    if not transcript.said:
        return ()

    async def new_handles() -> dict[str, str]:
        return {suffix: services.artifacts.new_handle() for suffix in TRANSCRIPT_TYPES}

    handles = await services.cache.get_or_compute(cache_key("transcript_handles", request_key), new_handles)
    limit = Deadline(deadline.at_s + deadline.margin_s * MARGIN_SHARE, deadline.clock)
    writing = services.in_background(_bring_up_to_date(services, stored, transcript, handles, request_key))
    await asyncio.wait({writing}, timeout=limit.remaining_s())
    held = {suffix: services.artifacts.find(handles[suffix]) for suffix in TRANSCRIPT_TYPES}
    if not writing.done():
        coming = {
            suffix: Artifact(handles[suffix], _name(transcript, suffix), TRANSCRIPT_TYPES[suffix], 0) for suffix in held
        }
        return tuple(held[suffix] or coming[suffix] for suffix in held)
    return tuple(one for one in held.values() if one is not None)


async def _bring_up_to_date(
    services: Services, stored: StoredFile, transcript: Transcript, handles: dict[str, str], request_key: str
) -> None:
    state = hashlib.sha256(f"{FILES_VERSION} {transcript!r}".encode("utf-8", "replace")).hexdigest()

    async def write() -> bool:
        await asyncio.to_thread(_write, services, stored, transcript, handles, state)
        return True

    try:
        # Callers of one state at once share its writing.
        await services.cache.get_or_compute(
            cache_key("transcript", request_key, state), write, fresh=lambda _: _are_of(services, handles, state)
        )
    except OSError as error:  # the files are beside the result: that holds every word, too
        logger.warning("transcript not written: %s", error.strerror)


def _are_of(services: Services, handles: dict[str, str], state: str) -> bool:
    """Whether all files are there and tell this state."""
    found = [services.artifacts.find(handles[suffix]) for suffix in TRANSCRIPT_TYPES]
    return all(one is not None and one.facts.get("state") == state for one in found)


def _write(services: Services, stored: StoredFile, transcript: Transcript, handles: dict[str, str], state: str) -> None:
    for suffix, data in transcript_files(transcript).items():
        services.artifacts.put(
            data,
            name=_name(transcript, suffix),
            mime_type=TRANSCRIPT_TYPES[suffix],
            handle=handles[suffix],
            facts={"state": state, INSPECTED: stored.handle},
        )


def _name(transcript: Transcript, suffix: str) -> str:
    return f"{transcript.file_name.rsplit('.', 1)[0]}-transcript.{suffix}"
