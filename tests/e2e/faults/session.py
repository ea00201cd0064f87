"""A host that knows what each profile allows: which line may come when.

`station`: the next line is the answer, and nothing else is ever written. `full`: answers come by id in any order;
notifications and requests only as MCP allows, which for this host, that opts in to nothing, means none.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.unit.bridge.host import PATIENCE_S, STATION_INITIALIZE, Program

from sam2_mcp_bridge import config

# `full` joins as soon as the bridge offers it.
PROFILES = [profile for profile in ("station", "full") if profile in config.PROFILES]

# Never the same twice, whatever bridge it goes through.
_tags = itertools.count(1)

# Offers nothing that a server could ask for and opts in to nothing.
PLAIN_INITIALIZE: dict[str, Any] = STATION_INITIALIZE | {
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "fault-suite", "version": "1"},
    }
}


class Session(Program):
    """The real bridge, spoken to by a careful host."""

    def __init__(self, url: str, profile: str, deadline_s: float, **environment: str) -> None:
        super().__init__(url, "--profile", profile, "--deadline", str(deadline_s), **environment)
        self.profile = profile
        self._early: dict[Any, dict[str, Any]] = {}

    def begin(self) -> dict[str, Any]:
        """Shake hands; what the bridge offers."""
        message = STATION_INITIALIZE if self.profile == "station" else PLAIN_INITIALIZE
        self.write(json.dumps(message).encode() + b"\n")
        answer = self.take(message["id"])
        self.send("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    def take(self, id_value: Any) -> dict[str, Any]:
        """The answer to the oldest request with this id; whatever else is written must be another answer."""
        key = json.dumps(id_value)
        while key not in self._early:
            answer = self.answer()
            assert "method" not in answer, f"nobody asked for {answer}"
            found = json.dumps(answer["id"])
            assert self.profile != "station" or found == key, f"{answer} is not the answer to {key}"
            assert found not in self._early, f"{answer} and {self._early[found]}"
            self._early[found] = answer
        return self._early.pop(key)

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        self._ids += 1
        self.send(method, params, id=self._ids)
        return self.take(self._ids)

    def tagged_call(self, name: str = "echo", **arguments: Any) -> tuple[str, dict[str, Any]]:
        """A tools/call with a tag that no other has; the tag and the result."""
        tag = f"{name}-{next(_tags)}"
        answer = self.ask("tools/call", {"name": name, "arguments": {"tag": tag, **arguments}})
        return tag, result_of(answer, name)

    def quiet(self) -> bool:
        """Nothing was written that no request waits for: the answer to a ping is the next line."""
        return self.ask("ping")["result"] == {} and self._lines.empty() and not self._early


def result_of(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """The result of a tools/call; a refusal of the upstream, which only an MCP host can take as what it is, as a text."""
    if "error" in answer:
        words = f"[refused] the worker refused {name}: {str(answer['error']['message'])[:300]}"
        return {"isError": True, "content": [{"type": "text", "text": words}]}
    result: dict[str, Any] = answer["result"]
    return result


@contextmanager
def session(url: str, profile: str, deadline_s: float = PATIENCE_S - 1, **environment: str) -> Iterator[Session]:
    """A bridge that is killed at the end if it did not end by itself."""
    host = Session(url, profile, min(deadline_s, config.MAX_DEADLINE_S), **environment)
    try:
        yield host
    finally:
        host.close_stdin()
        host.process.kill()
        host.exit_code()
