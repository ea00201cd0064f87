"""One fault of the upstream, by name: what it does to a call and what the host may then read.

The table is in upstream_*.py; test_upstream_faults.py and the soak (tests/bench/soak) run it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.upstream import Behaviour

PATIENT_S = 20.0
# Long enough for a call on a busy machine to reach the upstream, short enough for a table of stalls.
IMPATIENT_S = 0.8

FAILURE = re.compile(r"\[(\w+)\] ")


def _itself(tag: str) -> str:
    return tag


@dataclass(frozen=True)
class Expect:
    """What is right: the answer that belongs to the tag, or a failure with one of the codes, or either."""

    codes: frozenset[str] = frozenset()
    text: Callable[[str], str] | None = None

    def mistake(self, result: dict[str, Any], tag: str) -> str | None:
        """What is wrong with the result of a tools/call, None where nothing is."""
        content = result.get("content")
        if not (isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text"):
            return f"not one block of text: {str(result)[:200]}"
        text: str = content[0]["text"]
        if not result.get("isError"):
            right = self.text is not None and text == self.text(tag)
            return None if right else f"answered with {text[:200]!r}, which is not for {tag[:100]!r}"
        code = FAILURE.match(text)
        if code is None or code[1] not in self.codes or len(text) > 500:
            return f"failed with {text[:600]!r} instead of {sorted(self.codes) or 'an answer'}"
        return None


def answered(text: Callable[[str], str] = _itself) -> Expect:
    return Expect(text=text)


def failed(*codes: str) -> Expect:
    return Expect(codes=frozenset(codes))


def either(*codes: str) -> Expect:
    """Where the kernel decides whether the answer arrives before the connection ends."""
    return Expect(codes=frozenset(codes), text=_itself)


@dataclass(frozen=True)
class Case:
    """A fault that strikes one tools/call.

    Args:
        deadline_s: of the bridge; `IMPATIENT_S` where the deadline is what answers.
        others: what the upstream does with other methods meanwhile.
        cut: the upstream must see its connection closed before it ends it itself.
        posts: how often the call may reach the upstream.
        heavy: tens of megabytes; the soak leaves it out.
    """

    name: str
    behave: Behaviour
    expect: Expect
    deadline_s: float = PATIENT_S
    others: Mapping[str, Behaviour] = field(default_factory=dict)
    cut: bool = False
    posts: int = 1
    heavy: bool = False


def stalled(name: str, behave: Behaviour, expect: Expect | None = None) -> Case:
    """Nothing more comes: the deadline answers, and the upstream sees the bridge go."""
    return Case(name, behave, expect or failed("deadline"), deadline_s=IMPATIENT_S, cut=True)
