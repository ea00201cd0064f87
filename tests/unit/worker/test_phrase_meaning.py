"""Phrases looked for by their meaning inside a call: an endpoint that gives no answer takes nothing else with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.embedding_server import KEY, embedding_server

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Unread
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.pipelines import phrase_meaning
from sam2_mcp_worker.pipelines.check_phrases import PhraseCheck, Request, check_phrases
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

PHRASE = "해약환급금은 납입한 보험료보다 적을 수 있습니다"
TEXT = "무배당 든든한 건강보험\n중도에 그만두시면 돌려받는 금액이 낸 돈을 밑돌 수 있으니 주의하세요.\n"


@asynccontextmanager
async def desk(folder: Path, **settings: object) -> AsyncIterator[Services]:
    """Services that judge a text: no process is started for that."""
    services = Services(Settings(data_dir=folder / "data", **settings))  # type: ignore[arg-type]
    services._prepare_folders()
    try:
        yield services
    finally:
        await services.jobs.close()
        if services.embedder is not None:
            await services.embedder.close()


async def call(services: Services, seconds: float = 60.0) -> PhraseCheck:
    with deadline_scope(Deadline.after(seconds, margin_s=5.0)):
        return await check_phrases(services, Request(text=TEXT, phrases=(PHRASE,)))


async def test_an_endpoint_that_never_answers_leaves_the_call_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phrase_meaning, "MOST_S", 0.3)
    asked = 0
    over = asyncio.Event()

    async def never(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await over.wait()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = {"embeddings_api_key": KEY, "embeddings_base_url": f"http://127.0.0.1:{port}/v1"}
    async with server, desk(tmp_path, **address) as services:
        check = await call(services)
        over.set()
    assert asked == 1 and check.cursor is None and check.report is not None
    assert check.phrases[0]["state"] == "missing", "nobody said otherwise"
    assert any("paraphrases were not looked for" in note for note in check.notes)


async def test_with_little_time_left_the_next_call_looks_and_no_verdict_hangs_on_how_fast_it_was(
    tmp_path: Path,
) -> None:
    with embedding_server({"refund": ["해약환급금", "돌려받는 금액"]}) as fake:
        async with desk(tmp_path, **fake.settings()) as services:
            late = await call(services, phrase_meaning.LEAST_SHARE * services.settings.call_budget_s - 1)
            assert fake.batches == [] and late.cursor is not None and late.label.label == "none"
            with deadline_scope(Deadline.after(60.0, margin_s=5.0)):
                request = Request(text=TEXT, phrases=(PHRASE,), cursor=late.cursor)
                check = await check_phrases(services, request)
    assert check.cursor is None and check.phrases[0]["state"] == "review"
    assert "proves nothing" in check.phrases[0]["reason"] and check.label.label == "conditional"
    assert sum(usage.requests for spent, _ in check.costs for usage in spent.values()) == 1


async def test_what_could_not_be_told_stays_unknown_whatever_means_the_same(tmp_path: Path) -> None:
    page = ReadPage(1, "done", tuple(ReadLine(line, "text") for line in TEXT.splitlines()), (Unread("print"),))
    reading = Reading("text", "line", (page,))
    [became] = judge_phrases(judged_phrases((PHRASE,)), reading)
    assert became.state == "cannot_tell"
    unknown = Finding("phrase_missing", "asked_1", "cannot_tell", became.reason, "house")
    judgement = Judgement((JudgedRow(PHRASE, became, None, unknown, asked=True),))
    with embedding_server({"refund": ["해약환급금", "돌려받는 금액"]}) as fake:
        async with desk(tmp_path, **fake.settings()) as services:
            deadline = Deadline.after(20)
            found = await phrase_meaning.with_paraphrases(services, judgement, reading, job="j", deadline=deadline)
    [row] = found.judgement.rows
    assert row.became.state == "review" and "돌려받는" in row.became.read_as
    assert row.finding is not None and row.finding.verdict == "cannot_tell"
