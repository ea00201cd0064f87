"""One run of a case through tools: sources, list of tools, calls with their cursors, and whose answers they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sam2_mcp_worker.evaluation.case_files import Call, Case, CaseFile
from sam2_mcp_worker.evaluation.observing import RULES, label_in, most_severe, observed, settled, undone_in
from sam2_mcp_worker.evaluation.ports import ToolSession, ToolTarget
from sam2_mcp_worker.evaluation.profile import filled
from sam2_mcp_worker.evaluation.runs import Observed, Outcome, RefusedRun, missing_tools, unique

# A 500-page document takes some thirty calls; a cursor that never ends is a fault.
MAX_CALLS = 200
SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")
SOURCE_ARGUMENT = re.compile(r"\{([a-z][a-z0-9_]*)\}")


async def run_tools(target: ToolTarget, file: CaseFile, case: Case, run_id: str, paths: Mapping[str, Path]) -> Outcome:
    """All calls of a case in a session of its own.

    Each source goes up under a name that only this run has, and every result has to name it back: an answer that
    belongs to another run is seen, whatever order the answers come in.

    Raises:
        RefusedRun: the run says nothing about the case.
    """
    names = {name: _own_name(run_id, name, paths[name]) for name in case.source_names}
    async with target.session(run_id) as session:
        needed = [*file.tools.required, *(call.tool for call in case.calls)]
        missing_tools(needed, await session.tools(), file.tools.count)
        handles = {name: await target.upload(paths[name], names[name]) for name in sorted(names)}
        run = _Run(session, handles, names)
        for call in case.calls:
            await run.carry_out(call)
    return run.outcome()


def _own_name(run_id: str, name: str, path: Path) -> str:
    """Short and plain, so that the worker keeps it as it is; the ending is the file's, by which some kinds are told."""
    return f"{run_id}-{name}{path.suffix if SUFFIX.fullmatch(path.suffix) else ''}"


class _Run:
    def __init__(self, session: ToolSession, handles: dict[str, str], names: dict[str, str]) -> None:
        self._session = session
        self._handles = handles
        self._names = names
        self._labels: list[str] = []
        self._findings: list[Observed] = []
        self._undone: list[str] = []
        self._notes: list[str] = []
        self._texts: list[str] = []
        self._observes = False

    async def carry_out(self, call: Call) -> None:
        """One call and what its cursor leads to."""
        results = await self._follow(call)
        rules = call.observe or RULES.get(call.tool, ())
        self._observes = self._observes or bool(rules)
        self._findings += observed(rules, settled(call.tool, results))
        self._undone += undone_in(call.tool, results[-1])
        label = label_in(results[-1])
        self._labels += [label] if label is not None else []

    async def _follow(self, call: Call) -> list[dict[str, Any]]:
        arguments = filled(call.arguments, self._handles)
        results: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while not results or cursor["cursor"]:
            if len(results) == MAX_CALLS:
                raise RefusedRun("target_error", f"{call.tool}: the cursor did not end after {MAX_CALLS} calls")
            results.append(await self._one(call, arguments | cursor))
            cursor = {"cursor": results[-1].get("cursor")}
        return results

    async def _one(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await self._session.call(call.tool, arguments)
        self._texts.append(answer.text)
        if answer.is_error:
            raise RefusedRun("target_error", f"{call.tool}: {answer.text[:300]}")
        try:
            facts = json.loads(answer.text)
        except ValueError as error:
            raise RefusedRun("answer_unreadable", f"{call.tool}: {answer.text[:100]!r} is no result") from error
        if not isinstance(facts, dict):
            raise RefusedRun("answer_unreadable", f"{call.tool}: the result is no object")
        self._check_echo(call, facts)
        return facts

    def _check_echo(self, call: Call, facts: Mapping[str, Any]) -> None:
        asked = SOURCE_ARGUMENT.fullmatch(str(call.arguments.get("source", "")))
        if asked is None:
            if {"source", "text"} & call.arguments.keys():
                self._notes.append(
                    f"{call.tool}: not about a source of the case, so whose answer it is was not compared"
                )
            return
        echo, expected = facts.get("file"), self._names[asked[1]]
        if echo is None:
            raise RefusedRun("input_not_confirmed", f"{call.tool}: the result does not name its file")
        if echo != expected:
            raise RefusedRun("wrong_input", f"{call.tool} answered about {str(echo)[:100]!r}, asked was {expected!r}")

    def outcome(self) -> Outcome:
        """The most severe label, all findings."""
        return Outcome(
            most_severe(self._labels),
            unique(self._findings) if self._observes else None,
            tuple(self._undone),
            tuple(dict.fromkeys(self._notes)),
            len(self._texts),
            "\n".join(self._texts),
        )
