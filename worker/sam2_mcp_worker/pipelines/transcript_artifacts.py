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
    try:
        return await asyncio.to_thread(_write, services, transcript, request_key)
    except OSError as error:  # the files are beside the result: it holds every word, too
        logger.warning("transcript not written: %s", error.strerror)
        return ()


def _write(services: Services, transcript: Transcript, request_key: str) -> tuple[Artifact, ...]:
    key = cache_key("transcript", FILES_VERSION, request_key)
    content = hashlib.sha256(repr(transcript).encode("utf-8", "replace")).hexdigest()
    known = services.cache.get(key) or {"content": "", "handles": {}}
    if known["content"] == content:
        held = [services.artifacts.find(known["handles"].get(suffix)) for suffix in TRANSCRIPT_TYPES]
        if all(held):
            return tuple(one for one in held if one is not None)
    stem = transcript.file_name.rsplit(".", 1)[0]
    made = {
        suffix: services.artifacts.put(
            data,
            name=f"{stem}-transcript.{suffix}",
            mime_type=TRANSCRIPT_TYPES[suffix],
            handle=known["handles"].get(suffix),
        )
        for suffix, data in transcript_files(transcript).items()
    }
    services.cache.put(key, {"content": content, "handles": {suffix: one.handle for suffix, one in made.items()}})
    return tuple(made.values())
