"""inspect_pdf with a vision provider: the scripted Claude sees pages whose truth it knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent
from tests.fakes.claude_pages import TruePage, make_page, pdf_of
from tests.fakes.claude_script import WRONG_KEY, Script, cut, overloaded, refusal
from tests.fakes.claude_server import FakeClaude, claude_server
from tests.fakes.documents import document, good_page
from tests.fakes.raw_pdf import grey_image, one_page, show

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.pipelines.pdf_tiles import count_tiles_of_call
from sam2_mcp_worker.settings import Settings

SMALL_RESULT_CHARS = 4000
LABELS = ["coin", "seal", "disclaimer"]
FAST, ACCURATE = "claude-haiku-5-5", "claude-sonnet-5-5"


def small(name: str, *shapes: str, density: float = 0.4) -> TruePage:
    """A page of one tile."""
    return make_page(name, 800, 600, density=density, shapes=shapes, fine_lines=1)


# Each test has pages of its own, so that none is served what another one's calls paid for.
PAGES = {
    name: small(name, *shapes)
    for name, shapes in {
        "first": ("coin", "seal"),
        "second": (),
        "third": ("seal",),
        "alone": ("coin",),
        "refused": ("coin",),
        "beside": ("coin",),
        "cut": ("coin",),
        "busy": (),
        "paid": ("coin",),
        "unpaid": ("coin",),
        **{f"long {number}": ("coin",) for number in range(1, 7)},
    }.items()
}
TALL = make_page("two tiles", 1000, 1400, density=0.1, fine_lines=0)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server([*PAGES.values(), TALL]) as server:
        yield server


@pytest.fixture(scope="module")
def reading(fake: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    yield from serving(
        Settings(
            port=0,
            data_dir=tmp_path_factory.mktemp("claude-pdf"),
            ocr_processes=1,
            segmenter="off",
            result_max_chars=SMALL_RESULT_CHARS,
            **fake.settings(),
        ),
        with_masks=False,
    )


@pytest.fixture(autouse=True)
def plain_script(fake: FakeClaude) -> None:
    fake.play(Script())


class Caller(Agent):
    """An agent whose host looks at `_meta` too."""

    async def inspect(self, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The facts of one call, and what it cost."""
        async with self._client.session() as session:
            result = await session.call_tool("inspect_pdf", arguments)
        assert not result.is_error, result.content
        return json.loads(result.content[0].text), (result.meta or {}).get("sam2-mcp/usage", {})  # type: ignore[union-attr]


async def upload(agent: Agent, folder: Path, *names: str) -> str:
    path = folder / "pages.pdf"
    path.write_bytes(pdf_of([PAGES[name] for name in names]))
    return await agent.upload(path)


def by_number(results: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The parts of each page, in order."""
    parts: dict[int, list[dict[str, Any]]] = {}
    for page in (page for result in results for page in result["pages"]):
        parts.setdefault(page["page_number"], []).append(page)
    return parts


async def test_image_pages_are_read_by_the_model_and_their_regions_are_in_points(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    agent = Agent(reading)
    source = await upload(agent, tmp_path, "first", "second", "third")
    results = await agent.follow("inspect_pdf", source=source, labels=LABELS)
    assert results[-1]["coverage"] == {"total": 3, "done": 3, "failed": [], "unreached": []}
    assert {seen.model for seen in fake.requests} == {FAST}
    assert FAST in results[0]["engine"]
    assert not fake.refused
    for number, name in enumerate(("first", "second", "third"), start=1):
        truth, parts = PAGES[name], by_number(results)[number]
        text = "\n".join(part["text"] for part in parts)
        assert all(line.text in text for line in truth.lines)
        assert parts[-1]["regions_status"] == "done"
        found = [region for part in parts for region in part.get("regions", [])]
        wanted = [region for region in truth.regions if region.label in LABELS]
        assert sorted(region["label"] for region in found) == sorted(region.label for region in wanted)
        for region in wanted:
            box_pt = [value / 2 for value in region.box]
            (near,) = [f for f in found if f["label"] == region.label]
            assert near["box_xyxy_pt"] == pytest.approx(box_pt, abs=3)
            if region.text_height_px:
                assert near["text_height_pt"] == pytest.approx(region.text_height_px / 2, rel=0.2)
    async with httpx.AsyncClient(base_url=reading.base_url) as client:
        report = (await client.get(f"/artifacts/{results[-1]['report'].removeprefix('artifact://')}")).text
    assert FAST in report
    assert report.count('class="region" dir="auto">coin ·') == 1
    assert report.count('class="region" dir="auto">seal ·') == 2


async def test_the_same_document_three_times_is_covered_alike_and_paid_for_once(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    agent = Caller(reading)
    source = await upload(agent, tmp_path, "first", "third", "second")
    answers = [await agent.inspect(source=source, labels=["seal"]) for _ in range(3)]
    (first, paid), again = answers[0], answers[1:]
    assert paid["requests"] == len(fake.requests) == 3
    assert set(paid["per_page"]) == {"1", "2", "3"}
    assert paid["usd"] == pytest.approx(sum(page["usd"] for page in paid["per_page"].values()), abs=1e-6)
    assert (paid["input_tokens"], paid["output_tokens"]) == fake.tokens()
    assert paid["usd_today"] >= paid["usd"] > 0
    for result, cost in again:
        assert (cost["requests"], cost["usd"], cost["per_page"]) == (0, 0, {})
        assert result["coverage"] == first["coverage"]
        assert result["pages"] == first["pages"]
    assert not list(reading.services.work_root.iterdir()), "work directories were left behind"


@pytest.mark.parametrize(
    ("names", "mode", "model"),
    [(["alone"], "auto", ACCURATE), (["alone"], "fast", FAST), (["first", "second", "third"], "accurate", ACCURATE)],
)
async def test_the_mode_decides_the_model_and_auto_goes_by_the_tiles_of_the_whole_call(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path, names: list[str], mode: str, model: str
) -> None:
    agent = Agent(reading)
    results = await agent.follow("inspect_pdf", source=await upload(agent, tmp_path, *names), mode=mode)
    assert {seen.model for seen in fake.requests} == {model}
    assert all("regions" not in page and "regions_status" not in page for page in results[0]["pages"])


async def test_two_pages_of_two_tiles_are_too_many_for_the_accurate_model(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    path = tmp_path / "tall.pdf"
    path.write_bytes(pdf_of([TALL, TALL]))
    agent = Agent(reading)
    source = await agent.upload(path)
    await agent.follow("inspect_pdf", source=source, pages="1")
    assert [seen.model for seen in fake.requests] == [ACCURATE] * 2
    await agent.follow("inspect_pdf", source=source)
    assert [seen.model for seen in fake.requests[2:]] == [FAST] * 4


def layer_and_pictures() -> bytes:
    """A page of several tiles, of which a text layer tells all but two pictures in one tile."""
    lines = b"".join(show(f"Line {row} of the text layer stands here", 100, 900 - 60 * row, 20) for row in range(12))
    page = b"/MediaBox [0 0 1400 1000] /Resources << /Font << /F1 5 0 R >> /XObject << /X 10 0 R >> >>"
    return one_page(
        lines + b"q 200 0 0 100 1100 700 cm /X Do Q q 80 0 0 40 1000 700 cm /X Do Q", page, {10: grey_image(200, 100)}
    )


async def test_of_a_page_with_a_text_layer_only_what_it_does_not_tell_counts_and_is_sent(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.pdf"
    path.write_bytes(layer_and_pictures())
    agent = Agent(reading)
    result = await agent.call("inspect_pdf", source=await agent.upload(path))
    (asked,) = fake.requests
    assert asked.model == ACCURATE
    assert [(sent.width_px, sent.height_px) for sent in asked.pictures] == [(626, 256)]
    assert result["pages"][0]["source"] == "text_layer"


async def test_pages_that_cannot_be_analysed_do_not_cost_the_others(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    path = tmp_path / "broken.pdf"
    good = b"/MediaBox [0 0 400 300] "
    pages = document([good_page("never seen"), good_page("still read")])
    path.write_bytes(pages.replace(good, b"/MediaBox [0 0 200000 9]", 1))
    agent = Agent(reading)
    result = await agent.call("inspect_pdf", source=await agent.upload(path))
    assert result["coverage"]["failed"] == [1]
    assert "page_size" in result["pages"][0]["reason"]
    assert result["pages"][1]["text"] == "still read"


async def count_tiles(reading: RunningWorker, path: Path, seconds: float) -> int:
    """What a call with so much time counts, on the worker's loop; nothing is known of the file from before."""
    pdf, no_labels = PdfFile(path), ()
    counting = count_tiles_of_call(reading.services, pdf, (path.stem, ""), [1], no_labels, Deadline.after(seconds))
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(counting, reading.loop))


async def test_an_analysis_that_has_no_time_leaves_the_call_to_the_fast_model(
    reading: RunningWorker, tmp_path: Path
) -> None:
    path = tmp_path / "late.pdf"
    path.write_bytes(layer_and_pictures())
    assert await count_tiles(reading, path, 0) > reading.services.settings.vision_fast_above_tiles
    assert await count_tiles(reading, path, 60) == 1


async def test_pages_with_a_text_layer_are_looked_at_for_regions_only_and_cost_nothing_without_labels(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(override={"regions": [{"label": "coin", "confidence": 0.9, "box": [20, 40, 120, 140]}]}))
    path = tmp_path / "layer.pdf"
    path.write_bytes(document([good_page("Words of the text layer")]))
    agent = Caller(reading)
    source = await agent.upload(path)
    plain, cost = await agent.inspect(source=source)
    assert (plain["pages"][0]["text"], cost["requests"]) == ("Words of the text layer", 0)
    result, cost = await agent.inspect(source=source, labels=["coin"], detail="detailed")
    (page,), (asked,) = result["pages"], fake.requests
    assert cost["requests"] == 1
    assert asked.schema is not None
    assert list(asked.schema["properties"]) == ["regions"]
    assert [line["source"] for line in page["lines"]] == ["text_layer"]
    (region,) = page["regions"]
    scale = 150 / 72
    assert region["box_xyxy_pt"] == pytest.approx([20 / scale, 40 / scale, 120 / scale, 140 / scale], abs=0.1)
    assert region["number"] == len(page["lines"]) + 1


async def test_the_words_of_the_layer_in_a_region_tell_its_text_height(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    scale = 150 / 72
    around = [round(value * scale) for value in (30, 120, 300, 160)]
    fake.play(Script(override={"regions": [{"label": "disclaimer", "confidence": 0.9, "box": around}]}))
    path = tmp_path / "heights.pdf"
    path.write_bytes(document([show("A disclaimer in this size", 40, 160, 9) + show("Headline over it", 40, 250, 24)]))
    agent = Agent(reading)
    result = await agent.call("inspect_pdf", source=await agent.upload(path), labels=["disclaimer"])
    assert result["pages"][0]["regions"][0]["text_height_pt"] == pytest.approx(9, abs=0.1)


async def test_regions_that_nobody_could_look_for_are_looked_for_by_the_next_call_though_the_text_was_there(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(always=overloaded("3600")))
    path = tmp_path / "later.pdf"
    path.write_bytes(document([good_page("Its text layer is whole")]))
    agent = Caller(reading)
    asked = {"source": await agent.upload(path), "labels": ["coin"]}
    (page,) = (await agent.inspect(**asked))[0]["pages"]
    assert (page["status"], page["text"]) == ("done", "Its text layer is whole")
    assert (page["regions_status"], "regions" in page) == ("failed", False)
    assert "overloaded" in page["regions_reason"]
    assert any("calling again" in note for note in page["notes"])
    fake.play(Script(override={"regions": [{"label": "coin", "confidence": 0.9, "box": [20, 40, 120, 140]}]}))
    (page,) = (await agent.inspect(**asked))[0]["pages"]
    assert (page["regions_status"], len(page["regions"])) == ("done", 1)
    assert (await agent.inspect(**asked))[1]["requests"] == 0


async def test_where_only_regions_were_wanted_nobody_is_said_to_have_read(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(always=refusal()))
    path = tmp_path / "declined.pdf"
    path.write_bytes(document([good_page("The layer tells it all")]))
    agent = Agent(reading)
    (page,) = (await agent.call("inspect_pdf", source=await agent.upload(path), labels=["coin"]))["pages"]
    assert (page["text"], page["regions_status"]) == ("The layer tells it all", "failed")
    assert "refused" in page["regions_reason"]
    assert not any("local engine" in note for note in page.get("notes", []))


async def test_a_part_of_a_page_never_looks_as_if_nothing_had_been_found(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(override={"regions": [{"label": "coin", "confidence": 0.9, "box": [20, 40, 120, 140]}]}))
    path = tmp_path / "parts.pdf"
    path.write_bytes(document([b"".join(show("word " * 14 + str(row), 10, 290 - 4 * row, 4) for row in range(65))]))
    results = await Agent(reading).follow("inspect_pdf", source=await Agent(reading).upload(path), labels=["coin"])
    parts = by_number(results)[1]
    assert len(parts) > 1
    assert [part["regions_status"] for part in parts] == ["continues"] * (len(parts) - 1) + ["done"]
    assert [len(part.get("regions", [])) for part in parts] == [0] * (len(parts) - 1) + [1]


@pytest.mark.parametrize("rotation", [90, 270])
async def test_a_layer_that_runs_up_or_down_the_page_is_not_taken_for_a_lie(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path, rotation: int
) -> None:
    path = tmp_path / "turned.pdf"
    page = b"/MediaBox [0 0 400 300] /Rotate %d /Resources << /Font << /F1 5 0 R >> >>" % rotation
    path.write_bytes(
        one_page(show("A disclaimer in this size", 40, 160, 9) + show("Headline over it", 40, 250, 24), page)
    )
    result = await Agent(reading).call("inspect_pdf", source=await Agent(reading).upload(path))
    (told,) = result["pages"]
    assert (told["source"], told["smallest_text_pt"]) == ("text_layer", 9.0)
    assert sorted(told["text"].split("\n")) == ["A disclaimer in this size", "Headline over it"]
    assert any("could not be checked" in note for note in told["notes"])
    assert not fake.requests


async def test_without_a_provider_regions_are_not_available_and_never_an_empty_list(
    worker: RunningWorker, tmp_path: Path
) -> None:
    path = tmp_path / "local.pdf"
    path.write_bytes(document([good_page("Nobody looks here")]))
    agent = Caller(worker)
    source = await agent.upload(path)
    assert "regions_not_available" not in (await agent.inspect(source=source))[0]
    result, cost = await agent.inspect(source=source, labels=["default"])
    assert cost == {}
    assert "coin" in result["labels"]
    assert result["pages"][0]["regions_status"] == "not_available"
    assert "regions" not in result["pages"][0]
    assert "ANTHROPIC_API_KEY" in result["regions_not_available"]["mend"]
    assert "vision provider" in result["regions_not_available"]["reason"]


async def test_a_refused_page_is_read_by_the_local_engine_and_says_that_nobody_looked_for_regions(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(choose=lambda _, page: refusal() if page == "refused" else None))
    agent = Agent(reading)
    source = await upload(agent, tmp_path, "refused", "beside")
    parts = by_number(await agent.follow("inspect_pdf", source=source, labels=["coin"]))
    (refused,), (beside,) = parts[1], parts[2]
    assert refused["status"] == "done"
    assert refused["characters"] > 20
    assert refused["regions_status"] == "failed"
    assert "regions" not in refused
    assert "refused" in refused["regions_reason"]
    assert any("local engine" in note for note in refused["notes"])
    assert (beside["regions_status"], len(beside["regions"])) == ("done", 1)


async def test_an_answer_that_stays_cut_is_no_evidence_of_absence(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(always=cut(0.6)))
    agent = Agent(reading)
    (page,) = (await agent.follow("inspect_pdf", source=await upload(agent, tmp_path, "cut"), labels=["seal"]))[0][
        "pages"
    ]
    assert page["regions_status"] == "failed"
    assert "cut" in page["regions_reason"]
    assert any("cut" in note for note in page["notes"])
    assert page["undetected_ink"] > 0


async def test_a_page_whose_answer_would_come_too_late_fails_by_name(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    fake.play(Script(choose=lambda _, page: overloaded("3600") if page == "busy" else None))
    agent = Agent(reading)
    source = await upload(agent, tmp_path, "busy", "second")
    results = await agent.follow("inspect_pdf", source=source)
    parts = by_number(results)
    assert results[-1]["coverage"]["failed"] == [1]
    assert "overloaded" in parts[1][0]["reason"]
    assert parts[2][0]["status"] == "done"
    fake.play(Script())
    again = await agent.follow("inspect_pdf", source=source)
    assert again[-1]["coverage"]["failed"] == []
    assert len(fake.requests) == 1, "only the page that failed is asked for again"


async def test_labels_that_cannot_be_asked_for_are_refused_before_anything_is_read(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    agent = Agent(reading)
    source = await upload(agent, tmp_path, "second")
    for labels, text in ((["coin", "coin"], "label_twice"), (["a\nb"], "label_invalid"), (["x"] * 21, "labels")):
        with pytest.raises(Exception, match=text):
            await agent.call("inspect_pdf", source=source, labels=labels)
    assert not fake.requests


async def test_what_was_paid_for_is_served_while_the_provider_is_in_trouble_and_a_cursor_stays_good(
    reading: RunningWorker, fake: FakeClaude, tmp_path: Path
) -> None:
    """The last one here, since a wrong key is remembered for a while."""
    agent = Caller(reading)
    names = [f"long {number}" for number in range(1, 7)]
    source = await upload(agent, tmp_path, *names)
    asked = {"source": source, "labels": ["coin"], "detail": "detailed"}
    first, _ = await agent.inspect(**asked)
    assert first["cursor"]
    whole = await agent.follow("inspect_pdf", **asked)
    fake.play(Script(always=WRONG_KEY))
    other = await agent.call("inspect_pdf", source=await upload(agent, tmp_path, "unpaid"), labels=["coin"])
    assert other["pages"][0]["status"] == "done"
    assert other["pages"][0]["regions_status"] == "failed"
    assert reading.services.vision is not None
    assert reading.services.vision.trouble is not None
    requests = len(fake.requests)
    rest = [first]
    while cursor := rest[-1].get("cursor"):
        rest.append((await agent.inspect(**asked, cursor=cursor))[0])
    assert by_number(rest) == by_number(whole)
    some = by_number(await agent.follow("inspect_pdf", **asked, pages="2-3", mode="fast"))  # another job: from the disk
    assert [[region["label"] for part in some[n] for region in part["regions"]] for n in (2, 3)] == [["coin"]] * 2
    assert len(fake.requests) == requests
    labels = [region["number"] for parts in by_number(rest).values() for p in parts for region in p.get("regions", [])]
    assert len(labels) == len(names), "each region comes exactly once"
    mixed = tmp_path / "troubled.pdf"
    mixed.write_bytes(layer_and_pictures())
    assert await count_tiles(reading, mixed, 60) == 1, "the model does not depend on the trouble"
    fresh = await agent.call("inspect_pdf", source=await upload(agent, tmp_path, "paid"), labels=["coin"])
    assert fresh["pages"][0]["regions_status"] == "not_available"
    assert "key" in fresh["regions_not_available"]["reason"]
    assert fresh["engine"] == "local OCR"
