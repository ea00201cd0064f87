"""Daemon threads that are used again. Knows nothing of what they do.

A call has a thread of its own, and starting one took 0.2 ms of each call, on a busy machine up to 3 ms of one in ten:
the thread that starts waits for it to run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

# More than one host's usual calls at once; each costs some 50 kB.
MOST_IDLE = 4

_Job = Callable[[], None]
_idle: deque[SimpleQueue[_Job]] = deque()


def start(target: Callable[..., None], *args: object) -> None:
    """Run `target` in a thread that does nothing else meanwhile; there is no limit to how many."""
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), daemon=True).start()
    inbox.put(partial(target, *args))


def _work(inbox: SimpleQueue[_Job]) -> None:
    while True:
        inbox.get()()  # under no name: a finished job may hold megabytes
        if len(_idle) >= MOST_IDLE:
            return
        _idle.append(inbox)
