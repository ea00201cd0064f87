import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from sam2_mcp_bridge.process import threads

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def no_idle_threads_of_others() -> Iterator[None]:
    threads._idle.clear()
    yield


def settled(count: int) -> None:
    """Until so many threads are idle."""
    done = threading.Event()
    for _ in range(int(PATIENCE_S * 100)):
        if len(threads._idle) == count:
            return
        done.wait(0.01)
    raise AssertionError(f"{len(threads._idle)} idle, not {count}")


def test_a_thread_that_is_free_is_used_again() -> None:
    used: list[int] = []
    for _ in range(5):
        ended = threading.Event()
        threads.start(lambda ended=ended: (used.append(threading.get_ident()), ended.set()))  # type: ignore[misc]
        assert ended.wait(PATIENCE_S)
        settled(1)
    assert len(used) == 5 and len(set(used)) == 1


def test_jobs_that_wait_for_each_other_all_run() -> None:
    before = set(threading.enumerate())
    together = threading.Barrier(20, timeout=PATIENCE_S)
    for _ in range(19):
        threads.start(together.wait)
    together.wait()
    settled(threads.MOST_IDLE)
    done = threading.Event()
    while (
        len(set(threading.enumerate()) - before) > threads.MOST_IDLE
    ):  # one that ends late must not join the next test
        done.wait(0.01)


def test_an_idle_thread_holds_nothing_of_its_last_job() -> None:
    class Large:
        pass

    large = Large()
    left = weakref.ref(large)
    ended = threading.Event()
    threads.start(lambda *_: ended.set(), large)
    assert ended.wait(PATIENCE_S)
    settled(1)
    del large
    gc.collect()
    assert left() is None


def test_a_job_that_fails_takes_only_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: failed.set())
    threads.start(lambda: [][0])
    assert failed.wait(PATIENCE_S)
    threads.start(ended.set)
    assert ended.wait(PATIENCE_S)
    settled(1)
