"""What a source becomes for those who judge it: its lines with their places, and everything that nobody read."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.fakes.advertisements import HEADLINE, LIMIT
from tests.fakes.embedding_server import embedding_server
from tests.fakes.scripted_ears import ScriptedEars
from tests.fakes.scripted_eyes import COST, ScriptedEyes
from tests.fakes.speech_sounds import join, said, silence, write_sound
from tests.fakes.spot_video import NOTICE, PREMIUM, Spot, write_spot

from sam2_mcp_worker.checks.reading import ReadPage
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech_ports import Hearing, SpokenSegment
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.check_figures import Request as FigureRequest
from sam2_mcp_worker.pipelines.check_figures import check_figures
from sam2_mcp_worker.pipelines.check_phrases import Request, check_phrases
from sam2_mcp_worker.pipelines.document_reading import Document, ReadDocument, ReadRequest, open_document
from sam2_mcp_worker.pipelines.sound_documents import LOW_QUALITY, SoundDocument, VideoDocument
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.usage import USAGE_KEY, joined_usage

CALL_S = 60.0


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("document-reading")


@pytest.fixture(scope="module")
async def services(folder: Path) -> AsyncIterator[Services]:
    """Without any engine; tests bring their eyes and ears."""
    made = Services(
        Settings(data_dir=folder / "data", allowed_roots=(str(folder),), ocr_processes=1, decoder_processes=1)
    )
    made._prepare_folders()
    async with made.decoders, made.scanner:
        yield made
        await made.jobs.close()
        await asyncio.gather(*made._background, return_exceptions=True)


@pytest.fixture(scope="module")
def spot(folder: Path) -> Spot:
    return write_spot(folder / "spot.mp4", still=True)


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    with deadline_scope(Deadline.after(CALL_S, margin_s=2.0)):
        yield


async def opened(services: Services, path: Path, **more: str) -> Document:
    return await open_document(services, ReadRequest(str(path), **more))  # type: ignore[arg-type]


async def read(services: Services, path: Path, time_s: float = CALL_S) -> ReadDocument:
    return await (await opened(services, path)).read(Deadline.after(time_s))


def page_of(document: ReadDocument) -> ReadPage:
    [page] = document.reading.pages
    return page


def hear(services: Services, *answers: Hearing | WorkerError, quality: str = "provider") -> ScriptedEars:
    ears = ScriptedEars(f"ears {quality} {len(answers)}", answers, quality=quality)  # type: ignore[arg-type]
    services.transcribers = (ears,)
    services.hearing_turns[ears.identity] = RequestLimiter(1)
    return ears


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
async def test_a_text_file_is_read_whole_whatever_its_encoding(services: Services, folder: Path, encoding: str) -> None:
    path = folder / f"{encoding}.txt"
    path.write_bytes(f"{HEADLINE}\r\n\r\n{LIMIT}\r\n".encode(encoding))
    document = await read(services, path)
    assert (document.document.kind, document.reading.whole, document.complete) == ("text", True, True)
    assert [line.text for line in page_of(document).lines] == [HEADLINE, "", LIMIT]


async def test_files_that_nobody_can_read_are_refused_by_name(services: Services, folder: Path) -> None:
    with zipfile.ZipFile(folder / "book.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    (folder / "page.html").write_text("<!doctype html><p>x", encoding="utf-8")
    (folder / "noise.txt").write_bytes(bytes(range(256)) * 8)
    (folder / "long.txt").write_text("글" * 600_001, encoding="utf-8")
    (folder / "huge.txt").write_bytes(b"a" * 1_800_001)
    for name, code in (
        ("book.xlsx", "unsupported_file"),
        ("page.html", "unsupported_file"),
        ("noise.txt", "not_text"),
        ("long.txt", "text_too_long"),
        ("huge.txt", "text_too_long"),
    ):
        with pytest.raises(WorkerError) as caught:
            await opened(services, folder / name)
        assert caught.value.code == code, name
    with pytest.raises(WorkerError, match="pages_not_for_this"):
        await opened(services, folder / "utf-8.txt", pages="2")


async def test_what_a_video_shows_are_lines_with_times(services: Services, spot: Spot) -> None:
    services.vision = ScriptedEyes(spot.pages)
    nothing = await read(services, spot.path, time_s=0.0)
    assert [one.reason for one in page_of(nothing).unread] and not nothing.complete
    document = await read(services, spot.path)
    assert (document.document.kind, document.complete) == ("video", True)
    lines = {line.text: line for line in page_of(document).lines}
    assert (lines[PREMIUM].start_s, lines[PREMIUM].end_s) == (0.0, 1.5)
    assert lines[NOTICE].height == pytest.approx(12, abs=2)
    assert all(one.reason and one.box_xyxy for one in page_of(document).unread), "the drawing of the coin"
    assert isinstance(document.document, VideoDocument) and document.document.sound is None
    assert sum(one.usd for one in document.spent.values()) == pytest.approx(COST.usd * len(services.vision.asked))
    services.vision = None


async def test_a_phrase_of_a_video_is_found_in_what_is_shown_or_said_and_drawn_where_it_is(
    services: Services, spot: Spot
) -> None:
    services.vision = ScriptedEyes(spot.pages)
    with deadline_scope(Deadline.after(CALL_S, margin_s=10.0)):
        check = await check_phrases(services, Request(str(spot.path), phrases=[PREMIUM, "월 보험료 8,900원", LIMIT]))
    assert [row["state"] for row in check.phrases] == ["present", "altered", "cannot_tell"]
    assert (check.phrases[0]["start_s"], check.phrases[0]["box_xyxy_px"][0]) == (0.0, 62)
    assert check.report is not None
    html = services.artifacts.get(check.report.handle)[1].read_text(encoding="utf-8")
    assert "Frame at 0.00 s" in html and html.count("data:image/jpeg") == 1
    services.vision = None


async def test_what_was_said_are_lines_with_times_and_silence_is_gone_through(services: Services, folder: Path) -> None:
    hear(services, Hearing((SpokenSegment(0.0, 1.0, LIMIT),)))
    path = write_sound(folder / "talk.wav", join(silence(1.0), said("insurance covers accidents"), silence(2.0)))
    document = await read(services, path)
    [line] = page_of(document).lines
    assert (line.text, line.source, line.start_s) == (LIMIT, "speech", pytest.approx(1.0, abs=0.5))
    assert document.reading.whole and document.transcript is not None
    quiet = await read(services, write_sound(folder / "quiet.wav", silence(3.0)))
    assert quiet.reading.whole and not page_of(quiet).lines


async def test_of_words_that_may_be_wrong_and_of_voices_nobody_heard_nothing_is_claimed(
    services: Services, folder: Path
) -> None:
    path = write_sound(folder / "notice.wav", join(silence(1.0), said("read the terms before you sign"), silence(2.0)))
    hear(services, Hearing((SpokenSegment(0.0, 1.0, LIMIT),)), quality="low")
    assert [one.reason for one in page_of(await read(services, path)).unread] == [LOW_QUALITY]
    hear(services, WorkerError("busy", "the engine is busy"), WorkerError("busy", "the engine is busy"))
    failed = page_of(await read(services, path))
    assert "busy" in failed.unread[0].reason and failed.unread[0].start_s is not None
    services.transcribers = ()
    nobody = page_of(await read(services, path))
    assert "no speech engine" in nobody.unread[0].reason and not nobody.whole


async def test_a_film_container_without_pictures_is_a_recording(services: Services, folder: Path) -> None:
    sound = join(silence(0.5), said("insurance covers accidents"), silence(0.5))
    path = write_sound(folder / "talk.mp4", sound, codec="aac", container="mp4")
    assert isinstance(await opened(services, path), SoundDocument)


async def test_a_phrase_that_is_only_there_in_other_words_is_for_a_person_and_costs_what_is_told(folder: Path) -> None:
    phrase, near = (
        "해약환급금은 납입한 보험료보다 적을 수 있습니다",
        "중도에 그만두시면 돌려받는 금액이 낸 돈보다 적습니다.",
    )
    with embedding_server({"refund": ["해약환급금", "돌려받는 금액"]}) as fake:
        settings = Settings(data_dir=folder / "paid", allowed_roots=(str(folder),), **fake.settings())
        paid = Services(settings)
        assert paid.embedder is not None
        await paid.embedder.start()
        with deadline_scope(Deadline.after(CALL_S, margin_s=2.0)):
            check = await check_phrases(paid, Request(text=f"{HEADLINE}\n{near}", phrases=[phrase, LIMIT]))
        await paid.embedder.close()
    row, other = check.phrases
    assert (row["state"], row["verdict"], row["read_as"], row["line_number"]) == ("review", "review", near, 2)
    assert "proves nothing" in row["reason"] and other["state"] == "missing"
    usage = joined_usage(paid, check.costs)
    assert usage is not None and usage[USAGE_KEY]["requests"] >= 1 and "1" in usage[USAGE_KEY]["per_phrase"]


async def test_half_letters_in_a_text_or_a_name_cost_nothing(services: Services) -> None:
    with deadline_scope(Deadline.after(60.0, margin_s=5.0)):
        check = await check_figures(services, FigureRequest(text="Premium \ud800 10,000", evidence=("a\ud800b",)))
    assert check.findings is not None and [one.state for one in check.findings] == ["cannot_compare"]
    assert check.evidence[0].name == "ab" and check.report is not None
