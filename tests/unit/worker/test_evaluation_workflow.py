"""The field's faults of evaluations, planted in a real workflow endpoint: each is refused by name, none is scored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.loopback import closed_port
from tests.fakes.workflow_server import OPINION, STRANGER, TOKEN, FakeWorkflow, workflow_server

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation import runner
from sam2_mcp_worker.evaluation.case_files import Case, CaseFile, ToolsAsked
from sam2_mcp_worker.evaluation.profile import WorkflowProfile
from sam2_mcp_worker.evaluation.runner import Planned, evaluate, pending
from sam2_mcp_worker.evaluation.runs import Observed, Outcome, RunRecord, RunStore
from sam2_mcp_worker.evaluation.scoring import score
from sam2_mcp_worker.evaluation.stream_events import MAX_TEXT_CHARS, RunEvents
from sam2_mcp_worker.evaluation.workflow import WorkflowTarget

CASE = Case(id="leaflet", label="conditional", input="다음 광고를 심의하세요: {ad}")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeWorkflow]:
    with workflow_server() as fake:
        yield fake


@pytest.fixture
def fake(server: FakeWorkflow) -> FakeWorkflow:
    server.play()
    return server


def case_file(case: Case = CASE, tools: ToolsAsked | None = None, **profile: Any) -> CaseFile:
    profile = {"tools_path": "/tools", "echo_wait_s": 0.5} | profile
    return CaseFile.model_validate(
        {
            "title": "workflow",
            "sources": {"ad": {"path": "ad.pdf"}},
            "cases": [case.model_dump()],
            "workflow": profile,
            "tools": (tools or ToolsAsked()).model_dump(),
        }
    )


async def runs_of(
    url: str, folder: Path, file: CaseFile | None = None, *, repeats: int = 1, **options: Any
) -> list[RunRecord]:
    file = file or case_file()
    target = WorkflowTarget(url, TOKEN)

    async def ask(planned: Planned, run_id: str) -> Outcome:
        return await target.run(planned.file, planned.case, run_id, {"ad": "file_00"})

    plan = [Planned(file, case, {}, "d") for case in file.cases]
    numbers = range(1, repeats + 1)
    return await evaluate(plan, ask, RunStore(folder), lambda text: None, repeats=numbers, **options)


async def test_a_healthy_run_is_scored_with_its_label_and_findings(fake: FakeWorkflow, tmp_path: Path) -> None:
    fake.play(findings=[{"kind": "phrase_missing", "about": "예금자보호"}])
    (run,) = await runs_of(fake.url, tmp_path)
    assert run.counts and run.label == "conditional"
    assert run.findings == (Observed("phrase_missing", "예금자보호"),)
    assert run.notes == ()
    assert fake.tokens == {f"Bearer {TOKEN}"}
    assert OPINION[:100] in (tmp_path / "answers" / f"{run.run_id}.txt").read_text(encoding="utf-8")


async def test_every_run_has_a_conversation_of_its_own_and_the_input_of_its_case(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    runs = await runs_of(fake.url, tmp_path, repeats=4, parallel=4)
    assert all(run.counts for run in runs)
    assert {body["interaction_id"] for body in fake.bodies} == {run.run_id for run in runs}
    assert len(fake.bodies) == len(fake.log) == 4
    for body in fake.bodies:
        assert body["input_data"].startswith("다음 광고를 심의하세요: file_00")
        assert body["interaction_id"] in body["input_data"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("mixed_unnamed", "streams_mixed"),
        ("other_answer", "streams_mixed"),
        ("two_answers", "streams_mixed"),
        ("empty", "verdict_too_short"),
        ("short", "verdict_too_short"),
        ("wrong_input", "wrong_input"),
        ("no_log", "input_not_confirmed"),
        ("second_turn", "conversation_not_own"),
        ("cut", "stream_cut"),
        ("error", "target_error"),
        ("refuses", "target_error"),
        ("no_stream", "answer_unreadable"),
        ("stalls", "timeout"),
        ("tools_odd", "answer_unreadable"),
        ("tools_null", "tools_missing"),
        ("log_fails", "target_error"),
        ("breaks", "stream_cut"),
    ],
)
async def test_a_planted_fault_is_refused_and_never_scored_as_no_findings(
    fake: FakeWorkflow, tmp_path: Path, fault: str, code: str
) -> None:
    fake.play(fault)
    runs = await runs_of(fake.url, tmp_path, case_file(idle_s=0.3))
    assert [run.code for run in runs] == [code]
    result = score([CASE], runs)
    assert result.refused == {code: 1}
    assert result.agreement is result.recall is result.precision is None
    assert result.scored == 0 and not result.whole


async def test_a_conversation_that_runs_share_is_seen_before_the_second_run_is_sent(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    fake.play("shared_conversation")
    runs = await runs_of(fake.url, tmp_path, repeats=3)
    assert [run.code for run in runs] == ["", "conversation_not_own", "conversation_not_own"]
    assert len(fake.bodies) == 1


async def test_events_that_name_other_runs_are_set_aside_where_all_events_name_theirs(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    fake.play("mixed_named")
    (run,) = await runs_of(fake.url, tmp_path)
    assert run.counts
    assert run.notes == ("3 events of other runs were set aside",)
    text = (tmp_path / "answers" / f"{run.run_id}.txt").read_text(encoding="utf-8")
    assert "남의 글" not in text


async def test_the_id_of_another_run_in_an_answer_mixes_them_even_where_nothing_else_tells(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    target = WorkflowTarget(fake.url, None)
    file = case_file()
    await target.run(file, CASE, STRANGER, {"ad": "x"})
    fake.play("label_line", label=f"조건부 승인 ({STRANGER})")
    with pytest.raises(Exception, match="streams_mixed"):
        await target.run(file, CASE, "mine", {"ad": "x"})


@pytest.mark.parametrize(
    ("tools", "asked", "code"),
    [
        (["check_figures"], ToolsAsked(required=["check_phrases"]), "tools_missing"),
        ([], ToolsAsked(required=["check_phrases"]), "tools_missing"),
        (["check_phrases", "check_figures"], ToolsAsked(count=11), "tool_count"),
    ],
)
async def test_missing_tools_are_seen_before_anything_is_sent(
    fake: FakeWorkflow, tmp_path: Path, tools: list[str], asked: ToolsAsked, code: str
) -> None:
    fake.play(tools=tools)
    (run,) = await runs_of(fake.url, tmp_path, case_file(tools=asked))
    assert run.code == code
    assert fake.bodies == []


async def test_a_verdict_made_without_the_tools_that_it_needs_is_refused(fake: FakeWorkflow, tmp_path: Path) -> None:
    case = CASE.model_copy(update={"uses": ["check_phrases", "inspect_video"]})
    (run,) = await runs_of(fake.url, tmp_path, case_file(case, tools_path=""))
    assert run.code == "tools_unused"
    assert "inspect_video" in run.detail and "check_phrases" not in run.detail


async def test_what_could_not_be_checked_is_said(fake: FakeWorkflow, tmp_path: Path) -> None:
    fake.play("garbage")
    (run,) = await runs_of(fake.url, tmp_path, case_file(tools_path="", echo_path=""))
    assert run.counts
    assert [note.partition(" (")[0] for note in run.notes] == [
        "the tools of the agent were not checked before",
        "what the workflow received was not compared",
        "2 events could not be read",
    ]


@pytest.mark.parametrize(("fault", "code"), [("unsigned", "input_not_confirmed"), ("named", "")])
async def test_without_a_log_events_or_answer_have_to_name_the_run(
    fake: FakeWorkflow, tmp_path: Path, fault: str, code: str
) -> None:
    fake.play(fault)
    (run,) = await runs_of(fake.url, tmp_path, case_file(echo_path=""))
    assert run.code == code


async def test_a_label_in_a_line_counts_and_its_findings_are_not_taken_for_none(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    fake.play("label_line", label="조건부 승인")
    runs = await runs_of(fake.url, tmp_path)
    assert (runs[0].label, runs[0].findings) == ("conditional", None)
    result = score([CASE], runs)
    assert result.agreement is not None and result.recall is None and result.precision is None


async def test_nobody_there_is_a_refused_run_too(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    for file in (case_file(), case_file(tools_path="", echo_path="")):
        (run,) = await runs_of(url, tmp_path / str(id(file)), file)
        assert run.code == "target_unreachable"


@pytest.mark.parametrize("path", ["/nowhere", "/api/workflow/nowhere?x=1"])
async def test_an_address_with_a_path_is_used_as_it_is(fake: FakeWorkflow, tmp_path: Path, path: str) -> None:
    (run,) = await runs_of(fake.url + path, tmp_path)
    assert run.code == "target_error" and "404" in run.detail


async def test_a_run_that_takes_too_long_is_out_of_time(fake: FakeWorkflow, tmp_path: Path) -> None:
    fake.play("stalls")
    (run,) = await runs_of(fake.url, tmp_path, case_file(timeout_s=0.3))
    assert run.code == "timeout" and "0.3 s" in run.detail


async def test_finished_runs_are_kept_and_refused_ones_tried_again_only_on_request(
    fake: FakeWorkflow, tmp_path: Path
) -> None:
    fake.play("short")
    first = await runs_of(fake.url, tmp_path, repeats=2)
    fake.play()
    assert await runs_of(fake.url, tmp_path, repeats=2) == first
    assert fake.bodies == []
    third = await runs_of(fake.url, tmp_path, repeats=3, again=True)
    assert [run.code for run in third] == ["", "", ""]
    assert [run.notes for run in third] == [("tried again after verdict_too_short",)] * 2 + [()]
    assert len(fake.bodies) == 3
    assert await runs_of(fake.url, tmp_path, repeats=3, again=True) == third


def test_an_answer_without_end_is_no_answer() -> None:
    events = RunEvents(WorkflowProfile(), "r")
    events.take("   ")
    events.take("[1]")
    assert events.unreadable == 1
    with pytest.raises(Exception, match="longer than"):
        events.take('{"type": "data", "content": "' + "x" * (MAX_TEXT_CHARS + 1) + '"}')


def test_ids_are_found_wherever_an_event_holds_them() -> None:
    events = RunEvents(WorkflowProfile(), "r")
    events.take('{"type": "data", "content": "a", "steps": [{"meta": {"run_id": "r"}}]}')
    events.take('{"type": "data", "content": "b", "steps": [{"meta": {"run_id": "s"}}]}')
    events.take('{"type": "log", "content": "nobody\'s, and no text"}')
    events.take('{"type": "end", "run_id": "s"}')
    assert (events.text, events.named, events.foreign, events.ended) == ("a", 1, 2, False)


async def test_what_a_run_raises_is_told_and_one_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(planned: Planned, run_id: str) -> Outcome:
        raise WorkerError("upload_refused", "the worker answered 413")

    async def endless(planned: Planned, run_id: str) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    plan, store = [Planned(case_file(), CASE, {}, "d")], RunStore(tmp_path)
    assert pending(plan, store, [1, 2], again=False)
    (first,) = await evaluate(plan, refused, store, lambda text: None, repeats=[1])
    assert (first.code, first.detail) == ("target_error", "[upload_refused] the worker answered 413.")
    monkeypatch.setattr(runner, "RUN_LIMIT_S", 0.05)
    (second,) = await evaluate(plan, endless, store, lambda text: None, repeats=[2])
    assert second.code == "timeout"
    assert not pending(plan, store, [1, 2], again=False)
    assert pending(plan, store, [1, 2], again=True)
