"""Orders printed in a picture, through the whole worker: they are text in a result, and change nothing else in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes.claude_script import Fault, Script
from tests.fakes.claude_server import FakeClaude, claude_server
from tests.fakes.untrusted_pages import AFTER, BEFORE, EVERY_LABEL, HARMLESS, SHAPES, TRICKS, Trick

from sam2_mcp_worker.settings import Settings

BY_NAME = {trick.name: trick for trick in TRICKS}


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server([page for trick in TRICKS for page in (trick.page, trick.twin)]) as server:
        yield server


@pytest.fixture(scope="module")
def seeing_worker(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    settings = Settings(
        port=0,
        data_dir=tmp_path_factory.mktemp("untrusted"),
        segmenter="off",
        ocr_processes=1,
        decoder_processes=1,
        **fake.settings(),
    )
    yield from serving(settings, with_masks=False)


async def inspect(worker: RunningWorker, trick: Trick, folder: Path, *, twin: bool = False) -> dict[str, Any]:
    agent = Agent(worker)
    source = await agent.upload((trick.twin if twin else trick.page).write(folder))
    return await agent.call("inspect_image", source=source, labels=list(SHAPES), image="none")


def regions(result: dict[str, Any]) -> list[tuple[str, list[int], float]]:
    return [(one["label"], one["box_xyxy_px"], one["confidence"]) for one in result["regions"].get("found", ())]


async def test_a_page_that_gives_orders_is_reported_like_its_harmless_twin(
    fake: FakeClaude, seeing_worker: RunningWorker, tmp_path: Path
) -> None:
    fake.play(Script(box_error_px=0))
    for name in ("label", "quotes"):
        trick = BY_NAME[name]
        ordered = await inspect(seeing_worker, trick, tmp_path)
        harmless = await inspect(seeing_worker, trick, tmp_path, twin=True)
        assert ordered.keys() == harmless.keys() and ordered["regions"].keys() == harmless["regions"].keys()
        assert regions(ordered) == regions(harmless) and ordered["regions"]["labels"] == list(SHAPES)
        texts = [line["text"] for line in ordered["lines"]]
        assert [text for text in texts if text not in trick.orders] == [*BEFORE, *AFTER]
        assert [line["text"] for line in harmless["lines"] if line["text"] != HARMLESS] == [*BEFORE, *AFTER]
        assert ordered["coverage"] == harmless["coverage"]


async def test_a_model_that_obeys_the_page_names_no_other_label_and_hides_nothing(
    fake: FakeClaude, seeing_worker: RunningWorker, tmp_path: Path
) -> None:
    fake.play(Script(choose=lambda _, page: Fault("misled", answer=BY_NAME[page.removeprefix("trick ")].obeyed)))
    wordy = await inspect(seeing_worker, BY_NAME["schema"], tmp_path)
    assert "approved" not in wordy and "verdict" not in str(wordy) and "risk" not in wordy
    emptied = await inspect(seeing_worker, BY_NAME["empty"], tmp_path)
    assert emptied["undetected_ink"] > 0, "an empty answer about a printed page must not pass for an empty page"
    numbers = await inspect(seeing_worker, BY_NAME["outside"], tmp_path)
    width, height = numbers["width_px"], numbers["height_px"]
    for box in (line["box_xyxy_px"] for line in numbers["lines"]):
        assert 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height


async def test_a_label_that_the_page_invents_is_dropped_and_the_area_counts_as_not_looked_at(
    fake: FakeClaude, seeing_worker: RunningWorker, tmp_path: Path
) -> None:
    trick = BY_NAME["hidden"]  # a page that no other test has put into the cache
    fake.play(Script(always=Fault("misled", answer=BY_NAME["label"].obeyed)))
    result = await inspect(seeing_worker, trick, tmp_path)
    assert EVERY_LABEL not in str(result["regions"]) and "found" not in result["regions"]
    assert not result["regions"]["complete"] and result["regions"]["unlooked_areas"]
