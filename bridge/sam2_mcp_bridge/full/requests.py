"""The requests of a host that are not answered, the calls upstream that belong to them, and the line of each answer.

Knows nothing of eras beyond what an answer must carry, and nothing of time; what happens next is the relay's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_bridge.actions import MODERN_VERSION, Abort, Action, Extend, Host, Write
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.full import eras
from sam2_mcp_bridge.host import outcomes

# Their results tell what the server is.
_INTRODUCTIONS = ("initialize", "server/discover")

# Not limited in number: they cost the worker nothing.
UNCOUNTED = frozenset({"initialize", "subscriptions/listen"})


@dataclass(eq=False)
class Entry:
    """A request that is not answered."""

    id: str | int
    method: str
    params: Any
    deadline_s: float
    host: Host
    call: int | None = None  # its number, while it is upstream
    start_s: float = 0.0  # not before
    left_s: float | None = None  # of its own time, while the host is asked
    sets_level: bool = False  # the call is the one that makes the server log for this request
    rounds: int = 0  # in which a modern server wanted input
    inputs: dict[str, Any] = field(default_factory=dict)  # what it wanted, and its state
    filter: dict[str, Any] | None = None  # of a subscription that the bridge itself serves

    @property
    def subject(self) -> str:
        return outcomes.subject(self.method, self.params)

    @property
    def modern(self) -> bool:
        return self.host.version == MODERN_VERSION

    @property
    def is_queued(self) -> bool:
        return self.call is None and self.left_s is None and self.filter is None

    @property
    def is_running(self) -> bool:
        """A call that may ask something."""
        return self.call is not None and not self.sets_level and self.method not in UNCOUNTED

    @property
    def token(self) -> Any:
        return eras.meta_of(self.params).get("progressToken")

    @property
    def log_level(self) -> str | None:
        level = eras.meta_of(self.params).get(eras.LOG_LEVEL_KEY)
        return level if self.modern and isinstance(level, str) else None

    def moved_to(self, deadline_s: float) -> list[Action]:
        """It now has until then, and so has its call."""
        self.deadline_s = deadline_s
        return [] if self.call is None else [Extend(self.call, deadline_s)]


class Requests:
    """The table of them, in order of arrival.

    Args:
        max_line_bytes: above it an answer is replaced by an error that says so, anything else is left out.
        hint: goes behind the server's instructions.
    """

    def __init__(self, max_line_bytes: int, hint: str = "") -> None:
        self._max_line_bytes = max_line_bytes
        self._hint = hint
        self._entries: dict[tuple[type, str | int], Entry] = {}
        self._calls: dict[int, Entry] = {}
        self._newest_call = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: Entry) -> bool:
        return self.of_id(entry.id) is entry

    def add(self, entry: Entry) -> None:
        self._entries[type(entry.id), entry.id] = entry

    def of_id(self, id_value: Any) -> Entry | None:
        return self._entries.get((type(id_value), id_value)) if isinstance(id_value, str | int) else None

    def of_call(self, call: int) -> Entry | None:
        return self._calls.get(call)

    @property
    def calls(self) -> list[int]:
        return list(self._calls)

    @property
    def running(self) -> int:
        """Calls that cost the server something now: neither subscriptions nor those that wait for the host."""
        return sum(one.left_s is None and one.method not in UNCOUNTED for one in self._calls.values())

    def number(self) -> int:
        """A number for a call."""
        self._newest_call += 1
        return self._newest_call

    def attach(self, entry: Entry, call: int) -> int:
        """The entry is upstream, as this call."""
        entry.call = call
        self._calls[call] = entry
        return call

    def detach(self, entry: Entry) -> int | None:
        """Its call is not the entry's any more."""
        call, entry.call = entry.call, None
        if call is not None:
            del self._calls[call]
        return call

    def give_up(self, entry: Entry, reason: str | None) -> list[Action]:
        """Stop its call."""
        call = self.detach(entry)
        return [] if call is None else [Abort(call, reason)]

    def remove(self, entry: Entry) -> None:
        """It gets no line."""
        del self._entries[type(entry.id), entry.id]

    def answer(self, entry: Entry, **outcome: Any) -> list[Action]:
        """The one line of this request, which has no call any more."""
        if entry.method in _INTRODUCTIONS and "result" in outcome:
            outcome["result"] = outcomes.with_hint(outcome["result"], self._hint)
        try:
            line = outcomes.line({"jsonrpc": "2.0", "id": entry.id, **outcome}, self._max_line_bytes)
        except Failure as failure:
            return self.fail(entry, failure)
        self.remove(entry)
        return [Write(line)]

    def fail(self, entry: Entry, failure: Failure) -> list[Action]:
        outcome = outcomes.of_failure(entry.method, failure)
        if entry.modern and "result" in outcome:
            outcome = {"result": {"resultType": "complete", **outcome["result"]}}
        return self.answer(entry, **outcome)

    def write(self, message: dict[str, Any]) -> list[Action]:
        """A message that answers no entry; left out where it cannot be written."""
        try:
            return [Write(outcomes.line(message, self._max_line_bytes))]
        except Failure:
            return []
