"""The events of a workflow's stream, sorted by the run that they belong to. Sans-IO.

A server that mixes the streams of runs is caught: events that name another run are set aside; where they occur, events
that name no run could be anybody's, and the run is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sam2_mcp_worker.evaluation.profile import WorkflowProfile
from sam2_mcp_worker.evaluation.runs import RefusedRun

# An agent's whole answer has some thousand characters.
MAX_TEXT_CHARS = 2_000_000


class RunEvents:
    """Takes the data of each event of one stream, in order.

    Attributes:
        ended: the event that ends a run has come; without it the text is a part of the answer.
        tools: names of the tools that the stream told of.
        foreign: events that named another run.
        named: events that named this run.
        unreadable: events that were no JSON object or carried no text where text was due.
    """

    def __init__(self, profile: WorkflowProfile, run_id: str) -> None:
        self._profile = profile
        self._run_id = run_id
        self._pieces: list[str] = []
        self._size = 0
        self._unnamed = 0
        self.ended = False
        self.tools: list[str] = []
        self.foreign = self.named = self.unreadable = 0

    @property
    def text(self) -> str:
        """What this run said so far."""
        return "".join(self._pieces)

    def take(self, data: str) -> None:
        """One event.

        Raises:
            RefusedRun: `target_error` when it tells an error of this run, `answer_unreadable` above the limit.
        """
        event = _object(data)
        if event is None:
            self.unreadable += bool(data.strip())
            return
        names = set(_named(event, self._profile.id_fields))
        if names - {self._run_id}:
            self.foreign += 1
            return
        kind = str(event.get("type"))
        if names:
            self.named += 1
        elif kind in (*self._profile.text_types, *self._profile.end_types):
            self._unnamed += 1
        self._use(kind, event)

    def _use(self, kind: str, event: dict[str, Any]) -> None:
        profile = self._profile
        if kind in profile.error_types:
            detail = event.get("detail") or event.get(profile.text_field) or kind
            raise RefusedRun("target_error", f"the workflow ended with {kind}: {str(detail)[:300]}")
        if kind in profile.end_types:
            self.ended = True
        elif kind in profile.text_types:
            self._add(event.get(profile.text_field))
        elif kind in profile.tool_types:
            self.tools += list(_named(event, profile.tool_fields))

    def _add(self, piece: Any) -> None:
        if not isinstance(piece, str):
            self.unreadable += 1
            return
        self._size += len(piece)
        if self._size > MAX_TEXT_CHARS:
            raise RefusedRun("answer_unreadable", f"the answer is longer than {MAX_TEXT_CHARS} characters")
        self._pieces.append(piece)

    def check_whole(self) -> None:
        """Whether what was collected is the whole answer of this run and of no other.

        Raises:
            RefusedRun: `streams_mixed` or `stream_cut`.
        """
        if self.foreign and self._unnamed:
            raise RefusedRun(
                "streams_mixed",
                f"{self.foreign} events name other runs and {self._unnamed} name none: whose they are cannot be told",
            )
        if not self.ended:
            raise RefusedRun("stream_cut", f"the stream ended without its last event, after {self._size} characters")


def _object(data: str) -> dict[str, Any] | None:
    try:
        event = json.loads(data)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _named(value: Any, fields: list[str]) -> Iterator[str]:
    """Values of the fields wherever they stand in an event; fields hold ids or names, never text."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in fields and isinstance(item, str | int):
                yield str(item)
            else:
                yield from _named(item, fields)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item, fields)
