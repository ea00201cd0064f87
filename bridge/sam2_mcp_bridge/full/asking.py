"""What servers want to know from the host, and how its answers get back.

A legacy host is asked by requests under ids of the bridge's own; meanwhile the clock of the request concerned stands
still. A modern host is never asked: its call ends with what is needed, and goes on when it is made again with the
answers; until then it stays open upstream (`ParkedCall`). No I/O.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sam2_mcp_bridge.actions import Abort, Action, Answer, Extend, Host, Reply, as_object
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.full import eras
from sam2_mcp_bridge.full.requests import Entry, Requests
from sam2_mcp_bridge.host.framing import INTERNAL_ERROR, INVALID_PARAMS, Response, encode

STATE_PREFIX = "sam2-mcp-bridge/"

# A person is asked: minutes are normal, a forgotten question must not hold a call for ever.
INPUT_LIMIT_S = 600.0
# As the SDKs have it: a server that asks for ever would never be done.
MAX_INPUT_ROUNDS = 10
# For a server that wants no input but another try later.
STATE_ONLY_PAUSE_S = 0.25
# Calls that are open upstream for modern hosts which may never come back; each costs a thread and a connection.
MAX_PARKED_CALLS = 16

# Each is kept until it is answered. A person would answer a few; a server that asks without end gets errors.
MAX_QUESTIONS = 100


class Question(NamedTuple):
    """A request that a legacy host has not answered: one of a legacy server (`server_id`), or one under `key` in the
    input_required result of a modern server. `entry` is the host's request for which it came, if for one."""

    entry: Entry | None
    server_id: str | float | None = None
    key: str | None = None


@dataclass(eq=False)
class ParkedCall:
    """A call that is open upstream while a modern host, which was told what is needed, has not called again."""

    call: int
    host: Host
    state: str
    deadline_s: float
    requests: dict[str, dict[str, Any]]  # of the server, not yet answered; the key is ours
    answer: Answer | None = None  # the server has not waited

    def asks(self, request: dict[str, Any]) -> None:
        self.requests[encode(request["id"])] = request

    def result(self) -> dict[str, Any]:
        return eras.input_required(self.requests, self.state)

    def take_answers(self, given: dict[str, Any]) -> list[Action]:
        """The server's answers among what the host gave; what is none stays open."""
        answered = {key: given[key] for key in self.requests if isinstance(given.get(key), dict)}
        return [reply(self.requests.pop(key), result=result) for key, result in answered.items()]


class Asking:
    """The open questions and the parked calls."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._questions: dict[int, Question] = {}  # by the id under which the host knows them
        self._asked = 0
        self._parked: dict[int, ParkedCall] = {}
        # A state that another process gave must not be taken for one of ours.
        self._state_prefix = f"{STATE_PREFIX}{os.urandom(8).hex()}/"
        self._newest_state = 0

    @property
    def parked_calls(self) -> list[ParkedCall]:
        return list(self._parked.values())

    def parked_call(self, call: int) -> ParkedCall | None:
        return self._parked.get(call)

    def only_call(self, method: str) -> tuple[Entry | None, ParkedCall | None]:
        """The call that a server must mean which asks on its own stream, where it cannot say so; none if several."""
        able = [one for one in (*self._requests, *self._parked.values()) if eras.offers(one.host, method)]
        able = [one for one in able if isinstance(one, ParkedCall) or (one.modern and one.is_running)]
        only = able[0] if len(able) == 1 else None
        return (only, None) if isinstance(only, Entry) else (None, only)

    # A legacy host

    def ask(self, request: dict[str, Any], question: Question, now_s: float) -> list[Action]:
        """Pass a request of the server on."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": request["method"]}
        message |= {"params": request["params"]} if "params" in request else {}
        lines = self._requests.write(message) if len(self._questions) < MAX_QUESTIONS else []
        entry = question.entry
        if not lines and entry is not None and question.key is not None:
            return self._requests.fail(entry, Failure("input_too_large", subject=entry.subject))
        if not lines:
            return [_too_much(request)]
        self._questions[self._asked] = question
        if entry is not None and entry.left_s is None:
            entry.left_s = entry.deadline_s - now_s
            lines += entry.moved_to(now_s + INPUT_LIMIT_S)
        return lines

    def answered(self, response: Response, now_s: float) -> list[Action]:
        """Hand an answer of the host to the server that asked, or keep it until all are there."""
        question = self._questions.pop(response.id, None) if isinstance(response.id, int) else None
        if question is None or (question.entry is not None and question.entry not in self._requests):
            return []  # the request concerned may have run out of time at this very moment
        entry, actions = question.entry, list[Action]()
        if entry is None or question.key is None:
            actions.append(Reply({"jsonrpc": "2.0", "id": question.server_id, **response.outcome}))
        elif "error" in response.outcome:
            words = str(as_object(response.outcome["error"]).get("message"))
            return self._requests.fail(entry, Failure("input_refused", subject=entry.subject, detail=words))
        else:
            entry.inputs["inputResponses"][question.key] = response.outcome["result"]
        return actions + self._clock_on(entry, now_s)

    def _clock_on(self, entry: Entry | None, now_s: float) -> list[Action]:
        if entry is None or entry.left_s is None or any(one.entry is entry for one in self._questions.values()):
            return []
        left_s, entry.left_s = entry.left_s, None
        return entry.moved_to(now_s + left_s)

    def withdrawn(self, entry: Entry | None, call: int, server_id: Any, now_s: float) -> list[Action]:
        """The server needs no answer to this any more."""
        if (parked := self._parked.get(call)) is not None:
            parked.requests = {key: one for key, one in parked.requests.items() if one["id"] != server_id}
            return []
        moot = [
            number
            for number, one in self._questions.items()
            if one.entry is entry and one.key is None and one.server_id == server_id
        ]
        return [*self._take_back(moot), *self._clock_on(entry, now_s)]

    def sweep(self) -> list[Action]:
        """Take back what was asked for requests that are over."""
        items = self._questions.items()
        return [*self._take_back([number for number, one in items if one.entry and one.entry not in self._requests])]

    def session_ended(self) -> list[Action]:
        """Take back what a server asked on its own account: in a new session its ids mean something else."""
        return [*self._take_back([number for number, one in self._questions.items() if one.entry is None])]

    def _take_back(self, asked: list[int]) -> Iterator[Action]:
        for number in asked:
            del self._questions[number]
            params = {"requestId": number}
            yield from self._requests.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def gather(self, entry: Entry, result: dict[str, Any], now_s: float) -> list[Action]:
        """Ask for what a modern server needs to go on; the call is made again with the answers."""
        wanted = {key: as_object(one) for key, one in as_object(result.get("inputRequests")).items()}
        foreign = [method for one in wanted.values() if not eras.offers(entry.host, method := str(one.get("method")))]
        entry.rounds += 1
        if foreign:
            return self._requests.fail(entry, Failure("no_such_input", subject=entry.subject, detail=foreign[0]))
        if entry.rounds > MAX_INPUT_ROUNDS:
            failure = Failure("input_rounds", subject=entry.subject, limit=MAX_INPUT_ROUNDS)
            return self._requests.fail(entry, failure)
        entry.inputs = {"inputResponses": {}} if wanted else {}
        entry.inputs |= {"requestState": result["requestState"]} if "requestState" in result else {}
        entry.start_s = 0.0 if wanted else now_s + STATE_ONLY_PAUSE_S
        actions: list[Action] = []
        for key, one in wanted.items():
            if entry in self._requests:  # the first that cannot be asked for has ended the call
                actions += self.ask(one, Question(entry, key=key), now_s)
        return actions

    # A modern host

    def park(self, entry: Entry, request: dict[str, Any], now_s: float) -> list[Action]:
        """End the host's call with what it needs; upstream it stays open, for a while and not in any number."""
        actions: list[Action] = []
        if len(self._parked) >= MAX_PARKED_CALLS:
            actions += self.unpark(next(iter(self._parked.values())))
        call = self._requests.detach(entry)
        assert call is not None
        self._newest_state += 1  # each question has its own, so that the answers to an older one are not taken
        state = f"{self._state_prefix}{self._newest_state}"
        parked = ParkedCall(call, entry.host, state, now_s + INPUT_LIMIT_S, {})
        parked.asks(request)
        self._parked[call] = parked
        return [*actions, Extend(call, parked.deadline_s), *self._requests.answer(entry, result=parked.result())]

    def ask_more(self, parked: ParkedCall, request: dict[str, Any]) -> list[Action]:
        """Another question, for when the host comes back."""
        if len(parked.requests) >= MAX_QUESTIONS:
            return [_too_much(request)]
        parked.asks(request)
        return []

    def unpark(self, parked: ParkedCall) -> list[Action]:
        """Nobody came back for it."""
        del self._parked[parked.call]
        return [Abort(parked.call, "no input came")] if parked.answer is None else []

    def resume(self, entry: Entry) -> tuple[list[Action], Answer | None]:
        """Take a parked call up again for the request that brings the answers; what the call has brought meanwhile."""
        state = entry.params["requestState"]
        parked = next((one for one in self._parked.values() if one.state == state), None)
        if parked is None and self._gave(state):
            return [], Failure("input_expired", subject=entry.subject)
        if parked is None:
            error = eras.error(INVALID_PARAMS, "Invalid params: this requestState was never given")
            return self._requests.answer(entry, error=error), None
        if parked.answer is not None:
            del self._parked[parked.call]
            return [], parked.answer
        actions = parked.take_answers(as_object(entry.params.get("inputResponses")))
        if parked.requests:
            return actions + self._requests.answer(entry, result=parked.result()), None
        del self._parked[parked.call]
        self._requests.attach(entry, parked.call)
        return actions + entry.moved_to(entry.deadline_s), None

    def _gave(self, state: str) -> bool:
        number = state.removeprefix(self._state_prefix)
        return state != number and number.isdecimal() and 0 < int(number) <= self._newest_state


def _too_much(request: dict[str, Any]) -> Reply:
    return reply(request, error=eras.error(INTERNAL_ERROR, "too much for this client"))


def reply(request: dict[str, Any], **outcome: Any) -> Reply:
    """The answer to a request of the server."""
    return Reply({"jsonrpc": "2.0", "id": request["id"], **outcome})
