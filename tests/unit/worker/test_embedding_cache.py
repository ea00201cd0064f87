"""Embedded pictures stay in memory up to a number of bytes, the longest unused ones go."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.embedding_cache import EmbeddingCache


@dataclass(frozen=True)
class Entry:
    nbytes: int


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 20)), max_size=40))
def test_it_keeps_what_fits_and_was_used_last(bound: int, steps: list[tuple[int, int]]) -> None:
    cache: EmbeddingCache[Entry] = EmbeddingCache(bound)
    model: OrderedDict[int, Entry] = OrderedDict()
    for key, size in steps:
        if size < 0:
            assert cache.get(key) == model.get(key)
            if key in model:
                model.move_to_end(key)
            continue
        cache.put(key, Entry(size))
        model.pop(key, None)
        if size <= bound:
            model[key] = Entry(size)
        while sum(entry.nbytes for entry in model.values()) > bound:
            model.popitem(last=False)
        assert cache.nbytes == sum(entry.nbytes for entry in model.values()) <= bound
        assert len(cache) == len(model)
        assert all(key in cache for key in model)


def test_an_entry_larger_than_the_bound_drives_nothing_out() -> None:
    cache: EmbeddingCache[Entry] = EmbeddingCache(10)
    cache.put("kept", Entry(10))
    cache.put("too large", Entry(11))
    assert "too large" not in cache
    assert cache.get("kept") == Entry(10)


@dataclass
class Growing:
    nbytes: int


def test_an_entry_that_has_grown_counts_anew_when_it_is_put_again() -> None:
    cache: EmbeddingCache[Growing] = EmbeddingCache(10)
    entry = Growing(4)
    cache.put("a", entry)
    entry.nbytes = 8
    cache.put("a", entry)
    assert cache.nbytes == 8
    entry.nbytes = 100
    cache.discard("a")
    cache.discard("unknown")
    assert (cache.nbytes, len(cache)) == (0, 0)


def test_a_larger_version_that_does_not_fit_replaces_the_older_one_by_nothing() -> None:
    cache: EmbeddingCache[Entry] = EmbeddingCache(10)
    cache.put("a", Entry(4))
    cache.put("a", Entry(11))
    assert cache.get("a") is None
    assert cache.nbytes == 0
