"""One run of a case through a workflow endpoint, and the proof that its answer belongs to the case.

Three witnesses: the server's log of what it received under the run's id, events that name the run, and the run id in
the answer. One has to confirm, and none may contradict. A broken stream is never taken up again under the same id: the
second request would be a second turn of the same conversation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from sam2_mcp_worker.evaluation.case_files import Case, CaseFile
from sam2_mcp_worker.evaluation.profile import WorkflowProfile, filled
from sam2_mcp_worker.evaluation.runs import Outcome, RefusedRun, missing_tools, plain
from sam2_mcp_worker.evaluation.stream_events import RunEvents
from sam2_mcp_worker.evaluation.verdict_text import read_verdict

ECHO_POLL_S = 0.2
# One event is a piece of text or the account of a tool call.
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_LOG_BYTES = 16 * 1024 * 1024


class WorkflowTarget:
    """An endpoint at `url`; with a path of its own that is used instead of the profile's. `token` is a bearer token."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        self._base_url = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._run_ids: set[str] = set()

    async def run(self, file: CaseFile, case: Case, run_id: str, handles: Mapping[str, str]) -> Outcome:
        """Send the case's input, collect the answer, check whose it is, read its verdict.

        Raises:
            RefusedRun: the run says nothing about the case.
        """
        timeout = httpx2.Timeout(file.workflow.idle_s, connect=10.0)
        async with httpx2.AsyncClient(
            base_url=self._base_url, headers=self._headers, trust_env=False, timeout=timeout
        ) as client:
            self._run_ids.add(run_id)
            outcome = await _Run(client, self._path, file, case, run_id, handles).outcome()
        if any(other in outcome.text for other in self._run_ids - {run_id}):
            raise RefusedRun("streams_mixed", "the answer holds the id of another run of this evaluation")
        return outcome


class _Run:
    def __init__(
        self,
        client: httpx2.AsyncClient,
        path: str,
        file: CaseFile,
        case: Case,
        run_id: str,
        handles: Mapping[str, str],
    ) -> None:
        self._client = client
        self._path = path
        self._file = file
        self._case = case
        self._run_id = run_id
        self._profile: WorkflowProfile = file.workflow
        values = {"run_id": run_id, **handles}
        self._input = str(filled(case.input + self._profile.answer_form, values))
        self._values = values | {"input": self._input}
        self._notes: list[str] = []

    async def outcome(self) -> Outcome:
        """The run from its preconditions to its verdict."""
        await self._check_tools()
        if self._profile.echo_path and await self._log():
            raise RefusedRun("conversation_not_own", "the log of a run id that is new holds turns already")
        events = RunEvents(self._profile, self._run_id)
        try:
            await self._listen(events)
            return await self._judge(events)
        except RefusedRun as refused:
            refused.text = events.text
            raise

    async def _judge(self, events: RunEvents) -> Outcome:
        events.check_whole()
        verdict = read_verdict(events.text, self._input)
        if strangers := verdict.run_ids - {self._run_id}:
            raise RefusedRun("streams_mixed", f"the answer says that it belongs to run {min(strangers)[:80]!r}")
        logged = await self._check_echo()
        if not (logged or events.named or verdict.run_ids):
            raise RefusedRun("input_not_confirmed", "neither log, events nor answer say that it is this run's")
        if absent := sorted(set(self._case.uses) - set(events.tools)):
            raise RefusedRun("tools_unused", f"the stream tells of no call of {', '.join(absent)}")
        if events.foreign:
            self._notes.append(f"{events.foreign} events of other runs were set aside")
        if events.unreadable:
            self._notes.append(f"{events.unreadable} events could not be read")
        return Outcome(verdict.label, verdict.findings, (), tuple(self._notes), len(events.tools), events.text)

    async def _check_tools(self) -> None:
        asked = self._file.tools
        if not self._profile.tools_path:
            self._notes.append("the tools of the agent were not checked before (no tools_path)")
            return
        facts = await self._get(self._profile.tools_path, {})
        tools = facts.get("tools")
        if not isinstance(tools, list):
            raise RefusedRun("tools_missing", "tools_path answers without a list of tools")
        names = [str(tool.get("name") if isinstance(tool, dict) else tool) for tool in tools]
        missing_tools([*asked.required, *self._case.uses], names, asked.count)

    async def _listen(self, events: RunEvents) -> None:
        body = filled(self._profile.body, self._values)
        try:
            async with asyncio.timeout(self._profile.timeout_s):
                async with self._client.stream("POST", self._path or self._profile.path, json=body) as answer:
                    if answer.status_code != httpx2.codes.OK:
                        raise RefusedRun("target_error", f"the workflow answered {answer.status_code}")
                    async for event in httpx2.EventSource(answer, max_event_size=MAX_EVENT_BYTES):
                        events.take(event.data)
                        if events.ended:
                            break
        except TimeoutError as error:
            raise RefusedRun("timeout", f"not ended after {self._profile.timeout_s:g} s") from error
        except httpx2.TimeoutException as error:
            raise RefusedRun("timeout", f"nothing came for {self._profile.idle_s:g} s") from error
        except httpx2.ConnectError as error:
            raise RefusedRun("target_unreachable", "nobody answers there") from error
        except httpx2.SSEError as error:
            raise RefusedRun("answer_unreadable", f"no event stream: {error}") from error
        except httpx2.HTTPError as error:
            raise RefusedRun("stream_cut", f"{type(error).__name__} after {len(events.text)} characters") from error

    async def _check_echo(self) -> bool:
        """Whether the log confirms the input; False where there is no log."""
        if not self._profile.echo_path:
            self._notes.append("what the workflow received was not compared (no echo_path)")
            return False
        give_up_s = time.monotonic() + self._profile.echo_wait_s
        while not (entries := await self._log()):
            if time.monotonic() > give_up_s:
                raise RefusedRun("input_not_confirmed", "the workflow's log knows nothing of this run id")
            await asyncio.sleep(ECHO_POLL_S)
        if len(entries) > 1:
            raise RefusedRun("conversation_not_own", f"{len(entries)} turns are logged under this run's id")
        if plain(self._input) not in plain(_text_of(entries[0].get(self._profile.echo_input))):
            raise RefusedRun("wrong_input", "the workflow logged another input than the case's")
        return True

    async def _log(self) -> list[dict[str, Any]]:
        query = filled(self._profile.echo_query, self._values)
        facts = await self._get(filled(self._profile.echo_path, self._values), query)
        entries = facts.get(self._profile.echo_list)
        return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []

    async def _get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        try:
            answer = (await self._client.get(path, params=query or None)).raise_for_status()
            facts = answer.json() if len(answer.content) <= MAX_LOG_BYTES else None
        except httpx2.HTTPStatusError as error:
            raise RefusedRun("target_error", f"{path} answered {error.response.status_code}") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise RefusedRun("target_unreachable", f"{path}: {type(error).__name__}") from error
        if not isinstance(facts, dict):
            raise RefusedRun("answer_unreadable", f"{path} answers with no JSON object")
        return facts


def _text_of(value: Any) -> str:
    """All texts of a logged input, which may be wrapped in an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(map(_text_of, value.values()))
    if isinstance(value, list):
        return "\n".join(map(_text_of, value))
    return ""
