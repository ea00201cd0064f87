"""check_phrases as a pipeline: what calls share, what they tell when time is short, what a document cannot be asked."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import AsyncIterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.fakes.advertisements import ABSENT, HEADLINE, LIMIT, PROTECTED, TERMS, UNLIMITED, picture, write_pdf
from tests.fakes.documents import document, good_page
from tests.fakes.measured_documents import BLACK, WHITE, Drawn
from tests.fakes.scripted_ears import ScriptedEars
from tests.fakes.speech_sounds import join, said, silence, write_film
from tests.fakes.videos import write_clip

from sam2_mcp_worker.checks.reading import ReadPage
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing, SpokenSegment
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.check_phrases import JUDGING, PhraseCheck, Request, check_phrases
from sam2_mcp_worker.pipelines.document_reading import ReadDocument, ReadRequest, open_document
from sam2_mcp_worker.pipelines.inspect_pdf import Request as PdfRequest
from sam2_mcp_worker.pipelines.inspect_pdf import inspect_pdf
from sam2_mcp_worker.pipelines.phrase_visibility import UNSEEN
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.check_phrases import _model

CALL_S = 60.0
STALE_PROTECTED = PROTECTED.replace("1억원", "5천만원")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check-phrases")


@pytest.fixture(scope="module")
async def services(folder: Path) -> AsyncIterator[Services]:
    made = Services(
        Settings(data_dir=folder / "data", allowed_roots=(str(folder),), ocr_processes=1, decoder_processes=1)
    )
    made._prepare_folders()
    async with made.decoders, made.ocr_pool, made.redactors, made.scanner:
        yield made
        await made.jobs.close()
        await asyncio.gather(*made._background, return_exceptions=True)


@pytest.fixture(scope="module")
def leaflet(folder: Path) -> Path:
    """Page 1 a headline and the first half of a phrase, page 2 its other half and an old limit, page 3 the opposite."""
    first, second = TERMS[:20], TERMS[20:]
    return write_pdf(folder / "leaflet.pdf", [[HEADLINE, first], [second, STALE_PROTECTED], [UNLIMITED]])


async def call(services: Services, *, time_s: float = CALL_S, **arguments: object) -> PhraseCheck:
    with deadline_scope(Deadline.after(time_s, margin_s=5.0)):
        return await check_phrases(services, Request(**arguments))  # type: ignore[arg-type]


def states(check: PhraseCheck) -> dict[str, str]:
    return {row["phrase"]: row["state"] for row in check.phrases}


async def test_a_call_without_time_calls_nothing_missing_and_its_cursor_brings_the_verdicts(
    services: Services, leaflet: Path
) -> None:
    asked = {"source": str(leaflet), "phrases": [TERMS, LIMIT, PROTECTED, ABSENT]}
    first = await call(services, time_s=0.0, **asked)
    assert set(states(first).values()) == {"cannot_tell"}
    assert (first.label.label, first.report, bool(first.cursor)) == ("none", None, True)
    assert first.unread == ("pages 1-3: unreached (not reached yet)",)
    last = await call(services, cursor=first.cursor, **asked)
    assert states(last) == {TERMS: "present", LIMIT: "altered", PROTECTED: "altered", ABSENT: "missing"}
    assert (last.label.label, last.cursor, last.unread) == ("reject", None, ())
    rows = {row["phrase"]: row for row in last.phrases}
    assert {row["rests_on"] for row in last.phrases} == {"1-3"}
    assert rows[TERMS]["page_number"] == 1 and rows[TERMS]["source"] == "text_layer"
    assert rows[TERMS]["text_height_pt"] == pytest.approx(11.0, abs=0.1)
    assert rows[LIMIT]["differences"] and rows[LIMIT]["read_as"] == UNLIMITED
    x0, y0, x1, y1 = rows[PROTECTED]["box_xyxy_pt"]
    assert 25 < x0 < x1 < 420 and 55 < y0 < y1 < 80, "the second line of its page"
    assert last.counts == {"phrase_altered": {"not_met": 2}, "phrase_missing": {"met": 1, "not_met": 1}}


async def test_what_an_inspection_read_is_judged_again_for_nothing_whatever_handle_names_it(
    services: Services, leaflet: Path
) -> None:
    with deadline_scope(Deadline.after(CALL_S, margin_s=5.0)):
        inspection = await inspect_pdf(services, PdfRequest(str(leaflet)))
    assert inspection.report is not None and inspection.texts is not None
    overlay = inspection.pages[0].result["overlay"]  # type: ignore[index]
    by_file = await call(services, source=str(leaflet), phrases=[TERMS, ABSENT])
    readings = sorted(services.cache.entries())
    for source in (inspection.report.uri, inspection.texts.uri, f"artifact://{overlay}"):
        again = await call(services, source=source, phrases=[TERMS, ABSENT])
        assert states(again) == states(by_file) == {TERMS: "present", ABSENT: "missing"}
        assert again.report == by_file.report, "the same findings, the same report"
    assert sorted(services.cache.entries()) == readings, "nothing was read or drawn anew"


async def test_the_report_shows_the_findings_on_the_pages(services: Services, leaflet: Path) -> None:
    check = await call(services, source=str(leaflet), phrases=[TERMS, LIMIT, ABSENT])
    assert check.report is not None
    html = services.artifacts.get(check.report.handle)[1].read_text(encoding="utf-8")
    assert html.count("data:image/jpeg;base64,") == 3, "the pages on which something was found"
    assert UNLIMITED in html and "altered" in html and ABSENT in html
    assert re.search(r'<td class="n">3</td><td><span class="chip failed">', html), "the missing one"


async def test_a_page_that_failed_is_never_a_page_without_the_phrase(services: Services, folder: Path) -> None:
    path = folder / "broken.pdf"
    pages = document([good_page("Read the terms before you sign"), good_page("The premium may rise")])
    path.write_bytes(pages.replace(b"130 0 R]", b"999 0 R]"))  # the second page is not there
    check = await call(services, source=str(path), phrases=["Read the terms before you sign", "The premium may rise"])
    assert list(states(check).values()) == ["present", "cannot_tell"]
    assert "2" in check.phrases[1]["reason"] and check.label.label == "none"
    assert len(check.unread) == 1 and check.unread[0].startswith("page 2: failed")
    assert check.cursor is None, "going on brings nothing"


async def test_pages_that_were_not_asked_for_keep_the_label_open(services: Services, leaflet: Path) -> None:
    check = await call(services, source=str(leaflet), pages="1-2", phrases=[ABSENT])
    assert states(check) == {ABSENT: "cannot_tell"} and check.phrases[0]["rests_on"] == "1-2"
    assert check.phrases[0]["verdict"] == "cannot_tell" and "page 3" in check.phrases[0]["reason"]
    assert check.label.label == "none" and check.counts == {"phrase_missing": {"cannot_tell": 1}}
    assert check.unread == ("page 3: unreached (not asked for)",) and check.cursor is None
    assert any("only pages 1-2" in note for note in check.notes)
    whole = await call(services, source=str(leaflet), pages="1-2", date="2026-11-01")
    assert all(row["state"] != "missing" for row in whole.phrases), "nor where the pack asks"


async def test_a_picture_is_read_and_its_places_are_pixels(services: Services, folder: Path) -> None:
    path = folder / "banner.png"
    picture([HEADLINE, LIMIT]).save(path)
    check = await call(services, source=str(path), phrases=[LIMIT, PROTECTED])
    assert list(states(check).values()) == ["present", "missing"]
    row = check.phrases[0]
    assert row["source"] == "ocr" and "page_number" not in row
    x0, y0, x1, y1 = row["box_xyxy_px"]
    assert 30 < x0 < 60 < x1 and 90 < y0 < y1 < 150
    assert 20 < row["text_height_px"] < 40 and row["contrast"][0] > 4.5


async def test_without_phrases_the_whole_pack_is_judged_and_its_day_decides(services: Services, leaflet: Path) -> None:
    today = await call(services, source=str(leaflet), date="2026-11-01")
    kinds = {row["kind"] for row in today.rules}
    assert {row["rule"] for row in today.phrases} >= {"read_terms", "deposit_protection"}
    rows = {row["rule"]: row for row in today.phrases}
    assert (rows["read_terms"]["state"], rows["read_terms"]["verdict"]) == ("present", "met")
    assert (rows["deposit_protection"]["state"], rows["deposit_protection"]["verdict"]) == ("missing", "not_met")
    assert rows["renewal"]["reason"].startswith("nothing says that it is needed") and "verdict" not in rows["renewal"]
    assert "review_seal" in kinds and all(row["verdict"] != "met" for row in today.rules)
    assert today.label.label == "reject" and today.label.because
    numbers = [row["number"] for row in (*today.phrases, *today.rules)]
    assert numbers == list(range(1, len(numbers) + 1))
    before = await call(services, source=str(leaflet), date="2025-08-01")
    assert before.day.isoformat() == "2025-08-01"
    assert _model(before).date == "2025-08-01" and _model(today).rule_pack == "korean_insurance_ads"


async def test_a_mark_and_an_old_wording_that_nobody_can_see_are_for_a_person(services: Services, folder: Path) -> None:
    old = next(one for one in services.rule_pack.on(date(2026, 11, 1)).stale if one.id == "deposit_limit_50m")
    mark = "준법감시인 심의필 제2026-1호 (2026.01.01 ~ 2026.12.31)"
    verdicts = {}
    for ink in (BLACK, WHITE):
        drawn = Drawn().page().text(50, 100, 12, HEADLINE).text(50, 200, 9, mark, ink)
        for row, part in enumerate(textwrap.wrap(old.texts[0], 50)):
            drawn.text(50, 300 + 20 * row, 9, part, ink)
        check = await call(services, source=str(drawn.save(folder / f"{ink[0]}.pdf").path), date="2026-11-01")
        verdicts[ink] = {row["rule"]: (row["verdict"], row["what"]) for row in check.rules}
        assert check.counts["review_seal"] == ({"met": 4} if ink == BLACK else {"review": 4})
    assert verdicts[BLACK]["deposit_limit_50m"][0] == "not_met" and "seal" not in verdicts[BLACK]
    assert verdicts[WHITE]["deposit_limit_50m"] == verdicts[WHITE]["seal"] == ("review", UNSEEN)


async def test_findings_that_do_not_fit_come_with_the_cursor_each_once(services: Services, leaflet: Path) -> None:
    whole = await call(services, source=str(leaflet), date="2026-11-01")
    settings = services.settings
    services.settings = settings.model_copy(update={"result_max_chars": 11_000})
    try:
        seen: list[int] = []
        cursor: str | None = ""
        while cursor is not None:
            part = await call(services, source=str(leaflet), date="2026-11-01", cursor=cursor)
            seen += [row["number"] for row in (*part.phrases, *part.rules)]
            assert (part.counts, part.label) == (whole.counts, whole.label)
            cursor = part.cursor
            assert part.rows_left == len(whole.phrases) + len(whole.rules) - len(seen)
    finally:
        services.settings = settings
    assert sorted(seen) == [row["number"] for row in (*whole.phrases, *whole.rules)]


async def test_text_is_judged_at_once_and_its_lines_are_counted(services: Services) -> None:
    check = await call(services, text=f"{HEADLINE}\n\n{UNLIMITED}\n", phrases=[LIMIT, ABSENT])
    assert states(check) == {LIMIT: "altered", ABSENT: "missing"}
    assert check.phrases[0]["line_number"] == 3 and check.phrases[0]["source"] == "text"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "nothing_to_read"),
        ({"text": "  \n"}, "nothing_to_read"),
        ({"text": "x", "source": "file_1"}, "two_sources"),
        ({"text": "x", "date": "31.12.2026"}, "date_invalid"),
        ({"text": "x", "phrases": ["p" * 301]}, "phrase_invalid"),
        ({"text": "x", "phrases": ["?!"]}, "phrase_invalid"),
        ({"text": "x", "phrases": [f"문구 {n}" for n in range(21)]}, "too_many_phrases"),
        ({"text": "x", "pages": "1"}, "pages_not_for_this"),
        ({"text": "x" * 600_001}, "text_too_long"),
        ({"text": "x", "cursor": "not a cursor"}, "cursor_invalid"),
        ({"source": "leaflet.pdf", "pages": "4"}, "page_out_of_range"),
        ({"source": "nowhere.pdf"}, "source_not_found"),
    ],
)
async def test_what_is_wrong_is_said_by_name(
    services: Services, leaflet: Path, arguments: dict[str, object], code: str
) -> None:
    with pytest.raises(WorkerError) as caught:
        await call(services, **arguments)
    assert caught.value.code == code and caught.value.next_step


async def test_a_cursor_belongs_to_its_request(services: Services, leaflet: Path) -> None:
    first = await call(services, time_s=0.0, source=str(leaflet), phrases=[TERMS])
    with pytest.raises(WorkerError, match="cursor_invalid"):
        await call(services, source=str(leaflet), phrases=[LIMIT], cursor=first.cursor)


async def test_a_locked_pdf_asks_for_its_password(services: Services, folder: Path) -> None:
    path = write_pdf(folder / "locked.pdf", [[TERMS]], password="geheim")
    with pytest.raises(WorkerError, match="password_required"):
        await call(services, source=str(path), phrases=[TERMS])
    check = await call(services, source=str(path), phrases=[TERMS], password="geheim")
    assert states(check) == {TERMS: "present"} and "geheim" not in repr(check.gathered.main.document)


async def read(services: Services, path: Path, time_s: float = CALL_S) -> ReadDocument:
    with deadline_scope(Deadline.after(CALL_S)):
        document = await open_document(services, ReadRequest(str(path)))
        return await document.read(Deadline.after(time_s))


def page_of(document: ReadDocument) -> ReadPage:
    [page] = document.reading.pages
    return page


async def test_what_of_a_picture_was_not_reached_is_unread_by_its_place(services: Services, folder: Path) -> None:
    drawn = picture([LIMIT, HEADLINE])
    drawn.save(folder / "two-lines.png")
    nothing = await read(services, folder / "two-lines.png", time_s=0.0)
    assert (page_of(nothing).status, nothing.complete, nothing.reading.whole) == ("unreached", False, False)
    whole = await read(services, folder / "two-lines.png")
    assert page_of(whole).lines[0].text == LIMIT and whole.reading.whole
    assert page_of(whole).size == drawn.size
    assert page_of(whole).lines[0].height == pytest.approx(30, abs=8)
    assert nothing.document.key == whole.document.key and whole.began_with


async def test_of_a_file_with_several_pictures_nothing_is_claimed_that_a_further_one_may_hold(
    services: Services, folder: Path
) -> None:
    first, second = picture([HEADLINE]), picture([LIMIT])
    first.save(folder / "fax.tiff", save_all=True, append_images=[second])
    document = await read(services, folder / "fax.tiff")
    assert document.document.kind == "image"
    assert [one.reason for one in page_of(document).unread] == [
        "the file holds 2 pictures, and only the first was read"
    ]
    first.save(folder / "banner.gif", save_all=True, append_images=[second.resize(first.size)], duration=1000)
    assert (await open_document(services, ReadRequest(str(folder / "banner.gif")))).kind == "video", (
        "all of its frames are looked at"
    )


async def test_what_is_read_but_not_judged_yet_is_not_called_missing(services: Services, leaflet: Path) -> None:
    await call(services, source=str(leaflet), phrases=[TERMS])
    asked = {"source": str(leaflet), "phrases": [HEADLINE, ABSENT]}
    first = await call(services, time_s=0.0, **asked)
    assert {(row["state"], row["reason"]) for row in first.phrases} == {("cannot_tell", JUDGING)} and first.cursor
    assert states(await call(services, cursor=first.cursor, **asked)) == {HEADLINE: "present", ABSENT: "missing"}
    pack = await call(services, time_s=0.0, source=str(leaflet), date="2026-10-01")
    assert {(row["state"], row["reason"]) for row in pack.phrases} == {("cannot_tell", JUDGING)} and not pack.rules


async def test_a_notice_on_the_screen_is_held_against_the_minimums_of_the_pack(
    services: Services, folder: Path
) -> None:
    page = np.asarray(picture([TERMS], size_px=26))
    even = page[: page.shape[0] // 2 * 2, : page.shape[1] // 2 * 2]
    clip = write_clip(folder / "notice.mp4", [even] * 5, [Fraction(n, 2) for n in range(5)], audio=True)
    check = await call(services, source=str(clip.path), date="2026-11-01")
    row = next(row for row in check.phrases if row["rule"] == "read_terms")
    assert (row["state"], row["source"], row["start_s"]) == ("present", "ocr", 0.0)
    assert check.counts["exposure_too_short"] == {"met": 1} and check.counts["text_too_small"] == {"met": 2}
    assert check.gathered.sound is not None and check.gathered.sound.reading.whole, "a tone, and nobody speaks"
    missing = next(row for row in check.phrases if row["rule"] == "deposit_protection")
    assert missing["state"] == "missing", "neither shown nor spoken"


class LengthEars(ScriptedEars):
    """Pieces are heard beside one another, in any order: the longer one is the second."""

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        self.asked = int(piece.duration_s > 3.0)
        return await super().transcribe(piece, language=language, job=job, deadline=deadline)


async def test_a_notice_that_is_only_spoken_is_held_against_how_the_rest_is_spoken(
    services: Services, folder: Path
) -> None:
    longer = said("read the terms and conditions before you sign the contract of insurance with us")
    words = [silence(0.5), said("insurance covers accidents"), silence(3.0), longer]
    film = write_film(folder / "film.mp4", join(*words, silence(2.0)))
    heard = [Hearing((SpokenSegment(0.0, 1.2, text),)) for text in (HEADLINE, TERMS)]
    ears = LengthEars("film", heard, pieces_in_flight=1)
    services.transcribers = (ears,)
    services.hearing_turns[ears.identity] = RequestLimiter(1)
    check = await call(services, source=str(film), date="2026-11-01")
    services.transcribers = ()
    row = next(row for row in check.phrases if row["rule"] == "read_terms")
    assert (row["state"], row["source"]) == ("present", "speech") and row["start_s"] > 3
    assert sum(check.counts["speech_unbalanced"].values()) == 2, "rate and loudness"
    assert {unit: spent for spent, unit in check.costs}["piece"], "what hearing cost is told"
