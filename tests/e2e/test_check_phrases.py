"""check_phrases on a real worker, the way an agent calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import RunningWorker
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.advertisements import ABSENT, LIMIT, TERMS, UNLIMITED, write_pdf


async def test_an_uploaded_leaflet_is_judged_in_calls_that_end_with_a_label_and_a_report(
    worker: RunningWorker, tmp_path: Path
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(write_pdf(tmp_path / "leaflet.pdf", [[TERMS], [UNLIMITED]]))
    result = (await agent.follow("check_phrases", source=handle, phrases=[TERMS, LIMIT, ABSENT]))[-1]
    assert [row["state"] for row in result["phrases"]] == ["present", "altered", "missing"]
    assert [row["verdict"] for row in result["phrases"]] == ["met", "not_met", "not_met"]
    assert (result["label"], result["file"], result["kind"]) == ("reject", "leaflet.pdf", "pdf")
    assert result["coverage"] == {"total": 2, "done": 2, "failed": [], "unreached": []}
    assert result["report"].startswith("artifact://")
    by_report = await agent.call("check_phrases", source=result["report"], phrases=[TERMS, LIMIT, ABSENT])
    assert by_report == result, "the report of a check stands for the file that was checked"


async def test_a_text_is_held_against_the_whole_rule_pack(worker: RunningWorker) -> None:
    result = await Agent(worker).call("check_phrases", text=f"{TERMS}\n하루 1,000원이면 됩니다", date="2026-11-01")
    assert {row["rule"]: row["state"] for row in result["phrases"]}["read_terms"] == "present"
    assert "forbidden_wording" in {row["kind"] for row in result["rules"]}
    assert result["label"] in ("conditional", "reject") and result["because"]
    counted = sum(sum(verdicts.values()) for verdicts in result["findings"].values())
    assert counted >= len(result["rules"]) and "cursor" not in result


async def test_what_is_wrong_with_a_call_says_what_to_do(worker: RunningWorker) -> None:
    with pytest.raises(ToolFailure, match=r"\[nothing_to_read\].*give source"):
        await Agent(worker).call("check_phrases", phrases=[TERMS])
    with pytest.raises(ToolFailure, match=r"\[date_invalid\].*YYYY-MM-DD"):
        await Agent(worker).call("check_phrases", text=TERMS, date="tomorrow")
