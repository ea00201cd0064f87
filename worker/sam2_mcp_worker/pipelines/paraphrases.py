"""Looks for phrases that were not found word by word in other words, where the operator has set an embeddings key.

Owns what is sent (the phrases and the document's sentences, once: vectors are cached by text) and what an answer is
worth: a sentence for a person to look at, never a phrase that is there.
"""

from __future__ import annotations

import array
import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.checks.paraphrases import MAX_SENTENCES, Sentence, nearest, sentences
from sam2_mcp_worker.checks.reading import Reading
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.embedding_ports import Embedder, Vector
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """The sentence that is nearest to a phrase in meaning; `likeness` -1 to 1."""

    sentence: Sentence
    likeness: float


@dataclass(frozen=True, slots=True)
class Paraphrases:
    """By phrase, those that are near enough. `note` says why nobody looked, or that not everything was looked at."""

    found: dict[str, Paraphrase]
    note: str = ""


async def find_paraphrases(
    services: Services, phrases: Sequence[str], reading: Reading, *, job: str, deadline: Deadline
) -> Paraphrases | None:
    """None where no key is set, or there is nothing to compare. Costs are told to `spending.spend`.

    It never fails: what goes wrong with the endpoint is the note.
    """
    embedder = services.embedder
    if embedder is None or not phrases:
        return None
    candidates = await asyncio.to_thread(sentences, reading)
    if not candidates:
        return None
    texts = [*phrases, *(sentence.text for sentence in candidates)]
    try:
        vectors = await _vectors(services, embedder, texts, job, deadline)
    except WorkerError as error:
        return Paraphrases({}, f"paraphrases were not looked for: {error.what}")
    least = services.settings.embeddings_min_likeness
    found = await asyncio.to_thread(_near, phrases, candidates, vectors, least)
    whole = len(candidates) < MAX_SENTENCES
    return Paraphrases(found, "" if whole else f"paraphrases were looked for in the first {MAX_SENTENCES} sentences")


def _near(
    phrases: Sequence[str], candidates: Sequence[Sentence], vectors: Sequence[Vector], least: float
) -> dict[str, Paraphrase]:
    found = {}
    for phrase, vector in zip(phrases, vectors, strict=False):
        index, likeness = nearest(vector, vectors[len(phrases) :])
        if likeness >= least:
            found[phrase] = Paraphrase(candidates[index], round(likeness, 3))
    return found


async def _vectors(
    services: Services, embedder: Embedder, texts: Sequence[str], job: str, deadline: Deadline
) -> list[Vector]:
    """The vector of each text, from the cache or from the endpoint.

    Raises:
        WorkerError: the endpoint's, or the vectors of one model have different lengths.
    """
    keys = {text: cache_key("embedding", embedder.identity, text) for text in texts}
    known = await asyncio.to_thread(_cached, services, keys)
    missing = [text for text in keys if text not in known]
    new = dict(zip(missing, await embedder.embed(missing, job=job, deadline=deadline), strict=True)) if missing else {}
    await asyncio.to_thread(_keep, services, keys, new)
    vectors = [(known | new)[text] for text in texts]
    if len({len(vector) for vector in vectors}) != 1:
        raise WorkerError("embeddings_no_answer", "the endpoint gives vectors of different lengths for one model")
    return vectors


def _cached(services: Services, keys: dict[str, str]) -> dict[str, Vector]:
    values = {text: _unpacked(services.cache.get(key)) for text, key in keys.items()}
    return {text: value for text, value in values.items() if value is not None}


def _keep(services: Services, keys: dict[str, str], vectors: dict[str, Vector]) -> None:
    for text, vector in vectors.items():
        services.cache.put(keys[text], _packed(vector))


def _packed(vector: Vector) -> str:
    return base64.b85encode(array.array("f", vector).tobytes()).decode("ascii")


def _unpacked(value: Any) -> Vector | None:
    try:
        return tuple(array.array("f", base64.b85decode(value)))
    except (ValueError, TypeError):  # nothing stored, or nothing of ours
        return None
