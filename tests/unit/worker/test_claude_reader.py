"""What becomes of a vision provider's sights: lines on their ink, halves of cut answers, the local engine's part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.claude_pages import TruePage, make_page
from tests.fakes.scripted_eyes import Asked, ScriptedEyes, as_seen

from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.ports import Box, Sight, TextLine, TileReading, Wanted
from sam2_mcp_worker.engines.provider_errors import Kind
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.claude_reader import SETTLE_S, ClaudeReader
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

PAGE = make_page("reader", 1000, 900, density=0.5, shapes=("coin", "banknote"))
SMALL = make_page("small", 700, 200, density=0.5, fine_lines=2)
# Just high enough to be halved, so that the local engine has little to read.
LOW = make_page("low", 500, 300, density=0.5, fine_lines=1, shapes=("coin",))
BOTH = Wanted(text=True, labels=("coin", "banknote"))
WHOLE = (0, 0, 1000, 900)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("reader"), ocr_processes=1, decoder_processes=1)
    made = Services(settings)
    # Not `start`: a child for redactions takes seconds to load, and nobody redacts here.
    made._prepare_folders()
    async with made.decoders, made.ocr_pool:
        yield made


@pytest.fixture(scope="module")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PixelFile]:
    folder = tmp_path_factory.mktemp("pixels")
    return {page.name: decoded(page, folder) for page in (PAGE, SMALL, LOW)}


def decoded(page: TruePage, folder: Path) -> PixelFile:
    path = folder / f"{page.name}.rgb"
    path.write_bytes(page.rgb().tobytes())
    return PixelFile(path, *page.size_px)


class Reading:
    """One reader over the services, with eyes of its own."""

    def __init__(self, services: Services, pixels: dict[str, PixelFile], **eyes: object) -> None:
        self.eyes = ScriptedEyes((PAGE, SMALL, LOW), **eyes)  # type: ignore[arg-type]
        services.vision = self.eyes
        self.services, self.pixels = services, pixels

    async def read(self, wanted: Wanted = BOTH, rect: Box = WHOLE, page: TruePage = PAGE) -> TileReading:
        reader = ClaudeReader(self.services, "fast", wanted)
        return await reader.read_tile(self.pixels[page.name], rect, job="test", timeout_s=20)


def texts(lines: Sequence[TextLine]) -> list[str]:
    return sorted("".join(line.text.split()) for line in lines)


def true_texts(page: TruePage) -> list[str]:
    return sorted("".join(line.text.split()) for line in page.lines)


def fails(kind: Kind, when: Box | None = None) -> object:
    def change(asked: Asked, sight: Sight) -> Sight:
        if when is None or asked.rect == when:
            raise VisionError(kind, "it went wrong")
        return sight

    return change


def cut_above(height_px: int, kept: int = 0) -> object:
    """Answers about tiles higher than that are cut after some lines."""

    def change(asked: Asked, sight: Sight) -> Sight:
        if asked.rect[3] - asked.rect[1] <= height_px:
            return sight
        return replace(sight, lines=sight.lines[:kept], cut="tokens")

    return change


async def test_lines_and_regions_come_in_pixels_of_the_picture_with_measured_heights(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    rect = (0, 90, 1000, 900)
    reading = await Reading(services, pixels).read(rect=rect)
    inside = [line for line in PAGE.lines if line.box[1] >= 90]
    assert texts(reading.lines) == sorted("".join(line.text.split()) for line in inside)
    by_text = {"".join(line.text.split()): line for line in inside}
    for line in reading.lines:
        truth = by_text["".join(line.text.split())]
        assert max(abs(a - b) for a, b in zip(line.box_xyxy_px, truth.box, strict=True)) <= 10
        assert line.height_px == pytest.approx(truth.size_px, rel=0.25)
    assert reading.regions is not None
    assert sorted(region.label for region in reading.regions) == ["banknote", "coin"]
    assert {region.box_xyxy_px for region in reading.regions} <= {region.box for region in PAGE.regions}
    assert (reading.truncated, reading.again, reading.stood_in, reading.dropped) == (False, "", "", 0)


async def test_nobody_asked_for_labels_means_regions_unknown_and_nobody_asked_to_read_means_no_ink(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    assert (await Reading(services, pixels).read(Wanted(text=True))).regions is None
    only_regions = await Reading(services, pixels).read(replace(BOTH, text=False))
    assert (only_regions.lines, only_regions.undetected_ink) == ((), ())
    assert only_regions.regions


async def test_an_answer_cut_by_tokens_is_halved_until_nothing_is_cut(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    reading = Reading(services, pixels, change=cut_above(400))
    whole = await reading.read()
    assert texts(whole.lines) == true_texts(PAGE)
    assert not whole.truncated and not whole.again
    assert whole.regions is not None and sorted(region.label for region in whole.regions) == ["banknote", "coin"]
    heights = sorted(asked.rect[3] - asked.rect[1] for asked in reading.eyes.asked)
    assert heights[-1] == 900 and heights[0] <= 400 and len(heights) == 7


async def test_a_tile_too_small_to_be_halved_stays_cut_and_the_rest_is_told_as_ink(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    reading = Reading(services, pixels, change=cut_above(0, kept=1))
    small = await reading.read(Wanted(text=True), rect=(0, 0, 600, 200), page=SMALL)
    assert small.truncated and not small.again
    assert len(small.lines) == 1 and small.undetected_ink
    assert len(reading.eyes.asked) == 1


async def test_where_a_half_fails_what_the_cut_answer_had_is_kept_and_may_be_read_again(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        if asked.rect == WHOLE:
            return replace(sight, cut="tokens")
        if asked.rect[1] > 0:
            raise VisionError("overloaded", "everybody wants something")
        return sight

    reading = await Reading(services, pixels, change=change).read()
    assert texts(reading.lines) == true_texts(PAGE)
    assert reading.truncated
    assert "overloaded" in reading.again


async def test_where_a_half_is_cut_too_what_the_cut_answer_for_the_whole_had_is_kept(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        return replace(sight, cut="tokens") if asked.rect == WHOLE else replace(sight, lines=(), cut="connection")

    reading = await Reading(services, pixels, change=change).read()
    assert texts(reading.lines) == true_texts(PAGE)
    assert reading.truncated and "connection" in reading.again


async def test_a_half_that_the_local_engine_reads_leaves_regions_that_may_be_more(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        if asked.rect == (0, 0, 500, 300):
            return replace(sight, lines=(), cut="tokens")
        if asked.rect[1] > 0:
            raise VisionError("refused", "not this one")
        return replace(sight, regions=())

    reading = await Reading(services, pixels, change=change).read(rect=(0, 0, 500, 300), page=LOW)
    assert reading.truncated and "refused" in reading.stood_in and not reading.again
    assert reading.regions is not None
    assert [region.label for region in reading.regions] == ["coin"]  # which the cut answer for the whole had


@pytest.mark.parametrize(("cut", "questions"), [("time", 3), ("connection", 1)])
async def test_what_arrived_before_time_or_connection_broke_off_is_kept_and_more_may_be_had_again(
    services: Services, pixels: dict[str, PixelFile], cut: str, questions: int
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        return replace(sight, lines=sight.lines[:2], cut=cut)  # type: ignore[arg-type]

    reading = Reading(services, pixels, change=change)
    kept = await reading.read()
    assert len(kept.lines) >= 2 and kept.undetected_ink
    assert kept.truncated and kept.again
    assert len(reading.eyes.asked) == questions  # a half that is too slow again is not halved


async def test_a_tile_too_dense_for_its_time_is_whole_in_halves(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        return replace(sight, lines=sight.lines[:2], cut="time") if asked.rect == WHOLE else sight

    reading = await Reading(services, pixels, change=change).read()
    assert texts(reading.lines) == true_texts(PAGE)
    assert not reading.truncated and not reading.again


async def test_a_provider_in_trouble_is_not_asked(services: Services, pixels: dict[str, PixelFile]) -> None:
    reading = Reading(services, pixels, trouble=VisionError("cap", "the day is over"))
    read = await reading.read(Wanted(text=True), rect=(0, 0, 700, 200), page=SMALL)
    assert read.stood_in == read.again == "vision_cap: the day is over"
    assert len(read.lines) == len(SMALL.lines)
    assert not reading.eyes.asked


@pytest.mark.parametrize(("kind", "again"), [("auth", True), ("cap", True), ("refused", False), ("no_answer", False)])
async def test_the_local_engine_reads_what_the_provider_will_not(
    services: Services, pixels: dict[str, PixelFile], kind: Kind, again: bool
) -> None:
    reading = await Reading(services, pixels, change=fails(kind)).read(rect=(0, 0, 700, 200), page=SMALL)
    assert len(reading.lines) == len(SMALL.lines)
    assert reading.regions is None
    assert reading.stood_in == f"vision_{kind}: it went wrong"
    assert bool(reading.again) is again


async def test_the_local_engine_reads_nothing_where_only_regions_were_wanted(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    reading = await Reading(services, pixels, change=fails("refused")).read(replace(BOTH, text=False))
    assert reading == TileReading((), (), stood_in="vision_refused: it went wrong")


@pytest.mark.parametrize("kind", ["overloaded", "timeout"])
async def test_what_the_provider_may_do_later_fails_now(
    services: Services, pixels: dict[str, PixelFile], kind: Kind
) -> None:
    with pytest.raises(VisionError, match=f"vision_{kind}"):
        await Reading(services, pixels, change=fails(kind)).read()


async def test_a_defect_in_one_half_is_not_taken_for_a_failure_of_the_tile(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    def change(asked: Asked, sight: Sight) -> Sight:
        if asked.rect == WHOLE:
            return replace(sight, cut="tokens")
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        await Reading(services, pixels, change=change).read()


async def test_a_question_has_the_settings_time_and_the_calls_where_nothing_goes_on_after_it(
    services: Services, pixels: dict[str, PixelFile], tmp_path: Path
) -> None:
    reading = Reading(services, pixels)
    with deadline_scope(Deadline.after(5)):
        await reading.read()
        assert reading.eyes.asked[-1].limit_s == pytest.approx(25, abs=2)
        usual = services.settings
        services.settings = usual.model_copy(update={"background_limit_s": 0.0})
        try:
            await reading.read()
        finally:
            services.settings = usual
    assert reading.eyes.asked[-1].limit_s <= 5 - SETTLE_S


async def test_without_time_for_halves_the_cut_answer_is_what_there_is(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    reading = Reading(services, pixels, change=cut_above(0, kept=2))
    usual = services.settings
    services.settings = usual.model_copy(update={"background_limit_s": 0.0})
    try:
        with deadline_scope(Deadline.after(SETTLE_S)):
            kept = await reading.read()
    finally:
        services.settings = usual
    assert kept.truncated and kept.again
    assert len(kept.lines) == 2 and len(reading.eyes.asked) == 1


async def test_known_lines_are_read_by_the_local_engine(services: Services, pixels: dict[str, PixelFile]) -> None:
    reading = Reading(services, pixels)
    line = PAGE.lines[0]
    reader = ClaudeReader(services, "fast", BOTH)
    (read,) = await reader.read_boxes(pixels["reader"], [line.box], job="test", timeout_s=20)
    assert read.text and not reading.eyes.asked


async def test_tiles_are_encoded_in_folders_of_their_own_that_are_gone_afterwards(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    await Reading(services, pixels).read()
    assert [path for path in services.work_root.iterdir() if path.is_dir()] == []


def test_what_decides_a_reading_is_in_the_identity(services: Services) -> None:
    services.vision = ScriptedEyes((PAGE,), as_seen)
    readers = [
        ClaudeReader(services, "fast", BOTH),
        ClaudeReader(services, "accurate", BOTH),
        ClaudeReader(services, "fast", replace(BOTH, text=False)),
        ClaudeReader(services, "fast", replace(BOTH, labels=("coin", "seal"))),
        ClaudeReader(services, "fast", replace(BOTH, definitions=("round", "flat"))),
    ]
    assert len({reader.identity for reader in readers}) == len(readers)
    usual = services.settings
    services.settings = usual.model_copy(update={"claude_tile_tokens": 900})
    assert ClaudeReader(services, "fast", BOTH).identity != readers[0].identity
    services.settings = usual


async def test_a_tile_that_is_too_large_as_a_file_is_read_by_the_local_engine(
    services: Services, pixels: dict[str, PixelFile]
) -> None:
    reading = Reading(services, pixels)
    usual = services.settings
    services.settings = usual.model_copy(update={"claude_image_bytes": 500})
    try:
        kept = await reading.read(Wanted(text=True), rect=(0, 0, 700, 200), page=SMALL)
    finally:
        services.settings = usual
    assert kept.stood_in.startswith("vision_too_large") and kept.lines
    assert not reading.eyes.asked


async def test_pixels_that_are_gone_fail_the_tile(services: Services, tmp_path: Path) -> None:
    gone = {"reader": PixelFile(tmp_path / "gone.rgb", 1000, 900)}
    with pytest.raises(WorkerError, match="pixels_unreadable"):
        await Reading(services, gone).read()


async def test_what_was_paid_for_is_kept_where_it_cannot_be_compared_with_the_picture(
    services: Services, tmp_path: Path
) -> None:
    own = decoded(SMALL, tmp_path)

    def change(asked: Asked, sight: Sight) -> Sight:
        own.path.unlink()
        return sight

    reading = await Reading(services, {"small": own}, change=change).read(rect=(0, 0, 700, 200), page=SMALL)
    assert texts(reading.lines) == true_texts(SMALL)
    assert {line.height_px for line in reading.lines} == {0.0}
    assert reading.undetected_ink == ((0, 0, 700, 200),)
    assert "pixels_unreadable" in reading.again
