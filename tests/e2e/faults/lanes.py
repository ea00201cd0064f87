"""Cases that mostly wait for deadlines, several at a time: each lane is a thread with its own upstream and bridges.

The tests stay one per case: each asks for the outcome of its own, which is raised there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import pytest

# A case needs a fifth of a core and waits for the rest; more lanes on two cores would touch the shortest deadlines.
LANES = 4

Part = TypeVar("Part")


class Outcomes:
    """What became of each case, by the name of its test."""

    def __init__(self, names: Iterable[str]) -> None:
        self._missing = set(names)
        self._errors: dict[str, BaseException] = {}

    def settle(self, name: str, error: BaseException | None = None) -> None:
        self._missing.discard(name)
        if error is not None:
            self._errors[name] = error

    def check(self, request: pytest.FixtureRequest) -> None:
        """Raise what the case of this very test raised; one that was not run is an error, too."""
        name: str = request.node.name
        assert name not in self._missing, "no lane has come to this case"
        if name in self._errors:
            raise self._errors[name]


def chosen(request: pytest.FixtureRequest, test: str) -> dict[str, Mapping[str, Any]]:
    """Parameters of all runs of this test that are wanted in this session, by name."""
    module = request.module
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.module is module]
    return {item.name: item.callspec.params for item in items if item.originalname == test}


def side_by_side(
    opened: Callable[[], AbstractContextManager[Part]],
    check: Callable[..., None],
    cases: Mapping[str, Mapping[str, Any]],
) -> Outcomes:
    """Run `check(part, **case)` for every case in `LANES` threads, each with a part that it opened itself."""
    outcomes, todo = Outcomes(cases), deque(cases.items())

    def lane() -> None:
        with opened() as part:
            while todo:
                try:
                    name, case = todo.popleft()
                except IndexError:  # another lane was quicker
                    return
                try:
                    check(part, **case)
                except BaseException as error:
                    outcomes.settle(name, error)
                else:
                    outcomes.settle(name)

    lanes = [threading.Thread(target=lane, name=f"lane {number}", daemon=True) for number in range(LANES)]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    return outcomes
