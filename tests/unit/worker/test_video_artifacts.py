"""Artifacts of a video inspection: made once for the same findings, anew for more, and never at the result's cost."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.fakes.inspections import LOOKS, inspection, looks
from tests.fakes.video_tasks import InThisProcess
from tests.fakes.videos import SHAPES_SIZE, index_clip, moving_shapes, read_index, shapes_picture

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.exposure_sheets import MAX_CELLS
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video import probe_video, read_thumbnails
from sam2_mcp_worker.pipelines import video_artifacts
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.sheet_thumbs import SheetThumbs, kept_thumb
from sam2_mcp_worker.pipelines.video_artifacts import LATER, make_video_artifacts
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

LONG_S = 100.0


@pytest.fixture(scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    made = Services(Settings(data_dir=tmp_path_factory.mktemp("artifacts"), decoder_processes=1))
    made._prepare_folders()  # not `start`: nothing but decoders is needed here
    async with made.decoders:
        yield made
        await made.jobs.close()


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return moving_shapes(tmp_path_factory.mktemp("video") / "s.mp4", frames=72).path


def job(key: str = "j") -> Job:
    return Job(key, (0,))


def data(services: Services, artifact: Artifact | None) -> bytes:
    assert artifact is not None
    return services.artifacts.get(artifact.handle)[1].read_bytes()


async def test_an_inspection_leaves_two_pictures_and_a_report_that_holds_them(services: Services, video: Path) -> None:
    made = await make_video_artifacts(services, job(), inspection(video), Deadline.after(LONG_S))
    assert made.notes == ()
    assert [one.name for one in made.ready] == [
        "광고 <1>-time-line.jpg",
        "광고 <1>-contact-sheet.jpg",
        "광고 <1>-report.html",
    ]
    for picture in (made.time_line, made.contact_sheet):
        assert Image.open(io.BytesIO(data(services, picture))).format == "JPEG"
    html = data(services, made.report).decode("utf-8")
    assert html.count("data:image/jpeg;base64,") == 2
    assert "약관을 확인하세요" in html


async def test_the_same_findings_have_the_same_artifacts_whoever_asks_again(services: Services, video: Path) -> None:
    asked = inspection(video)
    first, second = await asyncio.gather(
        *(make_video_artifacts(services, job(key), asked, Deadline.after(LONG_S)) for key in "ab")
    )
    assert first.ready == second.ready
    services.artifacts.discard(first.ready[0].handle)
    again = await make_video_artifacts(services, job("c"), asked, Deadline.after(LONG_S))
    assert again.time_line is not None and again.time_line != first.time_line  # swept, so made anew
    assert again.contact_sheet == first.contact_sheet


async def test_more_findings_give_a_new_report_under_the_old_address_until_it_is_whole(
    services: Services, video: Path
) -> None:
    mine = job("grows")

    async def made(frames: int, *, complete: bool = False) -> str:
        now = inspection(video, looks=looks(complete=complete, frames=LOOKS[:frames]))
        ready = await make_video_artifacts(services, mine, now, Deadline.after(LONG_S))
        return data(services, ready.report).decode("utf-8")

    two = await made(2)
    assert "<dd>2</dd>" in two
    assert await made(3) == two  # more than half is known: a report of an earlier state will do
    assert "<dd>5</dd>" in await made(5)
    assert "Incomplete: not reached" in await made(5)
    assert "not reached:" not in await made(5, complete=True)
    (record,) = mine.notes.values()
    assert record.made.report is not None


async def test_a_call_without_time_has_its_result_and_the_next_one_the_artifacts(
    services: Services, video: Path
) -> None:
    mine, asked = job("late"), inspection(video, engine="another")
    soon = await make_video_artifacts(services, mine, asked, Deadline.after(0.0))
    assert soon.report is None and soon.notes == (LATER,)
    later = await make_video_artifacts(services, mine, asked, Deadline.after(LONG_S))
    assert later.report is not None and later.notes == ()


async def test_a_video_that_is_gone_costs_the_sheet_and_nothing_else(services: Services, tmp_path: Path) -> None:
    gone = inspection(tmp_path / "gone.mp4")
    gone = replace(gone, stored=replace(gone.stored, sha256="1" * 64))
    made = await make_video_artifacts(services, job("gone"), gone, Deadline.after(LONG_S))
    assert made.contact_sheet is None and made.time_line is not None
    (note,) = made.notes
    assert note.startswith("the contact sheet could not be made (")
    assert "There is no such picture." in data(services, made.report).decode("utf-8")


async def test_frames_that_do_not_come_in_time_are_said_to_be_missing(
    services: Services, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_artifacts, "SHEET_LIMIT_S", 0.0)
    asked = inspection(video)
    asked = replace(asked, stored=replace(asked.stored, sha256="2" * 64))
    made = await make_video_artifacts(services, job("slow"), asked, Deadline.after(LONG_S))
    assert made.contact_sheet is None
    assert made.notes == ("the contact sheet could not be made in time",)


async def test_a_defect_of_ours_costs_no_result(
    services: Services, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(video_artifacts, "render_video_report", broken)
    made = await make_video_artifacts(services, job("defect"), inspection(video), Deadline.after(LONG_S))
    assert made.report is None and made.time_line is not None
    assert made.notes == ("the report could not be made",)


async def test_nothing_read_has_no_sheet(services: Services, video: Path) -> None:
    nothing: InspectedVideo = inspection(video, looks=looks(frames=()))
    made = await make_video_artifacts(services, job("nothing"), nothing, Deadline.after(LONG_S))
    assert made.contact_sheet is None and made.notes == ()
    assert [one.mime_type for one in made.ready] == ["image/jpeg", "text/html"]


async def test_small_pictures_are_those_of_their_times_and_leave_no_whole_frames(tmp_path: Path) -> None:
    clip = index_clip(tmp_path / "i.mp4", frames=40, gop=12)
    runner, work = InThisProcess(), tmp_path / "work"
    work.mkdir()
    facts = await probe_video(runner, clip.path, max_video_s=60, timeout_s=100, job="t")
    wanted = [0, 5, 5, 20, 39]
    times_s = [clip.times_s[index] for index in wanted]
    small = read_thumbnails(runner, clip.path, facts, times_s, work, thumbnail_px=120, timeout_s=100, job="t")
    found = [(place, pixels, read_index(pixels.map_rgb())) async for place, pixels in small]
    assert [place for place, _, _ in found] == [0, 1, 2, 3, 4]
    assert [index for _, _, index in found] == wanted
    assert {max(pixels.width_px, pixels.height_px) for _, pixels, _ in found} == {120}
    assert [path.name[:6] for path in sorted(work.iterdir())] == ["thumb-"] * 5


async def test_frames_that_a_job_kept_need_no_second_decoding(services: Services, tmp_path: Path) -> None:
    """The video is gone, and the sheet is there all the same."""
    mine, gone = job("kept"), inspection(tmp_path / "gone.mp4")
    gone = replace(gone, stored=replace(gone.stored, sha256="3" * 64))
    thumbs = SheetThumbs(services, mine)
    path = tmp_path / "frame.rgb"
    path.write_bytes(np.ascontiguousarray(shapes_picture(0)).tobytes())
    for time_s in (0.0, 1.0, 2.0):
        await thumbs.keep(time_s, PixelFile(path, *SHAPES_SIZE))
    await thumbs.keep(3.0, PixelFile(tmp_path / "none.rgb", *SHAPES_SIZE))  # costs nothing but itself
    made = await make_video_artifacts(services, mine, gone, Deadline.after(LONG_S))
    assert made.notes == ()
    assert made.contact_sheet is not None and made.contact_sheet.facts["frames"] == 3
    assert kept_thumb(mine, 3.0) is None


async def test_a_sheet_that_lacks_frames_says_so_in_every_call(services: Services, tmp_path: Path) -> None:
    mine, gone = job("part"), inspection(tmp_path / "gone.mp4")
    gone = replace(gone, stored=replace(gone.stored, sha256="4" * 64))
    path = tmp_path / "frame.rgb"
    path.write_bytes(np.ascontiguousarray(shapes_picture(0)).tobytes())
    await SheetThumbs(services, mine).keep(1.0, PixelFile(path, *SHAPES_SIZE))
    for asking in (mine, job("part, later")):
        made = await make_video_artifacts(services, asking, gone, Deadline.after(LONG_S))
        assert made.contact_sheet is not None
        assert made.notes == ("the contact sheet shows 1 of 3 frames: the others could not be decoded again",)


async def test_no_more_frames_are_kept_than_a_sheet_has_cells(services: Services, tmp_path: Path) -> None:
    mine = job("many")
    thumbs = SheetThumbs(services, mine)
    path = tmp_path / "frame.rgb"
    path.write_bytes(bytes(3))
    for number in range(MAX_CELLS + 3):
        await thumbs.keep(float(number), PixelFile(path, 1, 1))
    assert kept_thumb(mine, MAX_CELLS - 1.0) is not None and kept_thumb(mine, float(MAX_CELLS)) is None
