"""Cases through a real station and a scripted server behind it: whose answer it is, and what does not count."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.loopback import closed_port
from tests.unit.station.harness import PATH, SHORT, StationClient, running_station

from sam2_mcp_worker.evaluation import station as station_module
from sam2_mcp_worker.evaluation import tool_run
from sam2_mcp_worker.evaluation.case_files import Call, Case, CaseFile, ObserveRule, SourceSpec, ToolsAsked
from sam2_mcp_worker.evaluation.runs import Observed, Outcome, RefusedRun
from sam2_mcp_worker.evaluation.station import BridgeCommand, StationTarget
from sam2_mcp_worker.evaluation.tool_run import run_tools

SERVER = Path(__file__).parents[2] / "fakes" / "evaluated_server.py"
CASE = Case(id="ad", calls=[Call(tool="check_phrases", arguments={"source": "{ad}"})])


class NamesAsHandles:
    """Stands for a worker: the scripted server answers with the handle as the file's name."""

    async def upload(self, path: Path, name: str) -> str:
        return name


@pytest.fixture(scope="module")
async def station() -> AsyncIterator[StationClient]:
    async with running_station(replace(SHORT, request_s=0.8)) as client:
        yield client


async def evaluated(
    station: StationClient, tmp_path: Path, fault: str, case: Case = CASE, tools: ToolsAsked | None = None
) -> Outcome:
    bridge = BridgeCommand(str(SERVER), (fault,), {"PATH": PATH})
    target = StationTarget(str(station.http.base_url), bridge, NamesAsHandles())
    file = CaseFile(title="t", sources={"ad": SourceSpec(path="ad.pdf")}, cases=[case], tools=tools or ToolsAsked())
    return await run_tools(target, file, case, f"run-{fault}", {"ad": tmp_path / "ad.pdf"})


async def test_a_case_is_carried_out_in_a_session_that_ends_with_it(station: StationClient, tmp_path: Path) -> None:
    outcome = await evaluated(station, tmp_path, "healthy")
    assert outcome.label == "conditional"
    assert outcome.findings == (Observed("phrase_missing", "예금자보호"),)
    assert (outcome.undone, outcome.notes, outcome.calls) == ((), (), 1)
    assert await station.listed() == []


async def test_a_cursor_is_followed_and_the_last_label_counts(station: StationClient, tmp_path: Path) -> None:
    outcome = await evaluated(station, tmp_path, "two_pages")
    assert (outcome.label, outcome.calls) == ("conditional", 2)
    assert outcome.findings == (Observed("phrase_review", "민원"), Observed("phrase_missing", "예금자보호"))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("other_file", "wrong_input"),
        ("nameless", "input_not_confirmed"),
        ("other_tools", "tools_missing"),
        ("silent", "timeout"),
        ("exits", "timeout"),
        ("stray_line", "answer_unreadable"),
        ("picture_first", "answer_unreadable"),
        ("no_facts", "answer_unreadable"),
        ("list_of_facts", "answer_unreadable"),
        ("tool_error", "target_error"),
        ("refuses", "target_error"),
    ],
)
async def test_a_planted_fault_is_refused_and_its_session_given_up(
    station: StationClient, tmp_path: Path, fault: str, code: str
) -> None:
    with pytest.raises(RefusedRun) as refused:
        await evaluated(station, tmp_path, fault)
    assert refused.value.code == code
    assert await station.listed() == []


async def test_an_agent_without_tools_is_not_asked(
    station: StationClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station_module, "TOOLS_WAIT_S", 0.05)
    monkeypatch.setattr(station_module, "TOOLS_POLL_S", 0.1)
    with pytest.raises(RefusedRun, match="tools_missing: check_phrases not among the 0 tools offered"):
        await evaluated(station, tmp_path, "no_tools")
    with pytest.raises(RefusedRun, match="tool_count: 1 tools offered, 11 expected"):
        await evaluated(station, tmp_path, "healthy", tools=ToolsAsked(count=11))


async def test_a_cursor_without_end_is_a_fault(
    station: StationClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_run, "MAX_CALLS", 3)
    with pytest.raises(RefusedRun, match="did not end after 3 calls"):
        await evaluated(station, tmp_path, "endless")


async def test_a_call_with_rules_of_its_own_about_no_source_of_the_case_is_told(
    station: StationClient, tmp_path: Path
) -> None:
    rules = [ObserveRule(each="phrases", kind="{state}", about="{phrase}")]
    calls = [Call(tool="check_phrases", arguments={"source": "plain"}, observe=rules)]
    outcome = await evaluated(station, tmp_path, "healthy", Case(id="all", calls=calls))
    assert outcome.findings == (Observed("missing", "예금자보호"), Observed("present", "청약 철회"))
    assert len(outcome.notes) == 1 and "was not compared" in outcome.notes[0]


async def test_a_station_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = StationTarget(f"http://127.0.0.1:{closed_port()}", BridgeCommand(), NamesAsHandles())
    file = CaseFile(title="t", sources={"ad": SourceSpec(path="ad.pdf")}, cases=[CASE])
    with pytest.raises(RefusedRun, match="target_unreachable"):
        await run_tools(target, file, CASE, "run", {"ad": tmp_path / "ad.pdf"})


async def test_a_session_that_the_station_forgot_is_lost(station: StationClient, tmp_path: Path) -> None:
    bridge = BridgeCommand(str(SERVER), ("healthy",), {"PATH": PATH})
    async with StationTarget(str(station.http.base_url), bridge, NamesAsHandles()).session("r") as session:
        (session_id,) = await station.listed()
        assert await session.tools() == ["check_phrases"]
        await station.http.delete(f"/api/mcp/sessions/{session_id}")
        with pytest.raises(RefusedRun, match="session_lost"):
            await session.call("check_phrases", {})


async def test_an_answer_that_the_client_does_not_wait_for_is_a_timeout(station: StationClient, tmp_path: Path) -> None:
    bridge = BridgeCommand(str(SERVER), ("silent",), {"PATH": PATH})
    target = StationTarget(str(station.http.base_url), bridge, NamesAsHandles(), call_limit_s=0.4)
    arguments: dict[str, Any] = {"source": "x"}
    async with target.session("r") as session:
        await session.tools()
        with pytest.raises(RefusedRun, match="timeout: tools/call: no answer from the station"):
            await session.call("check_phrases", arguments)


async def test_a_station_that_ends_in_the_middle_of_a_session_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station_module, "TOOLS_WAIT_S", 0.05)
    monkeypatch.setattr(station_module, "TOOLS_POLL_S", 0.05)
    async with AsyncExitStack() as stack:
        async with running_station(SHORT) as brief:
            target = StationTarget(
                str(brief.http.base_url), BridgeCommand(str(SERVER), ("healthy",), {"PATH": PATH}), NamesAsHandles()
            )
            session = await stack.enter_async_context(target.session("r"))
        with pytest.raises(RefusedRun, match="target_unreachable: tools/list"):
            await session.tools()
