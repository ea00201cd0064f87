"""The one road by which pictures, sounds and documents leave, on a real worker's stores and decoder children."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp_types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent
from PIL import Image
from pydantic import BaseModel
from tests.conftest import RunningWorker
from tests.e2e.segmenting import on_loop
from tests.unit.worker.test_signatures import SAMPLES

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.tools.host_profile import HostProfile, profile_scope, read_profile
from sam2_mcp_worker.tools.picture_road import send


class Result(BaseModel):
    """Any tool's."""

    fact: str = "사실"


def sent(
    worker: RunningWorker, show: Any, *, profile: HostProfile | None = None, within_s: float = 60, **what: Any
) -> CallToolResult:
    """What a tool would answer, made inside the worker."""

    async def work() -> CallToolResult:
        with profile_scope(profile or HostProfile()), deadline_scope(Deadline.after(within_s)):
            return await send(worker.services, Result(), show, **what)

    answer: CallToolResult = asyncio.run(on_loop(worker, work()))
    return answer


def facts(answer: CallToolResult) -> dict[str, Any]:
    """The JSON of the first block, which every answer begins with."""
    first = answer.content[0]
    assert isinstance(first, TextContent)
    found: dict[str, Any] = json.loads(first.text)
    assert found["fact"] == "사실"
    return found


def artifact(worker: RunningWorker, data: bytes, mime_type: str, name: str = "a.bin") -> Artifact:
    return worker.services.artifacts.put(data, name=name, mime_type=mime_type)


def swept(worker: RunningWorker, data: bytes, mime_type: str) -> Artifact:
    """One whose file goes while a call is about to read it."""
    gone = artifact(worker, data, mime_type)
    worker.services.artifacts.get(gone.handle)[1].unlink()
    return gone


@pytest.fixture(scope="module")
def overlay(worker: RunningWorker) -> Artifact:
    """Larger than a thumb and than what goes inline, as JPEG."""
    pixels = np.random.default_rng(3).integers(0, 256, (90, 200, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((2000, 900)).save(out, "JPEG")
    return artifact(worker, out.getvalue(), "image/jpeg", "overlay.jpg")


def kinds(answer: CallToolResult) -> list[str]:
    return [block.type for block in answer.content]


def test_a_picture_comes_after_all_its_facts_and_alone(worker: RunningWorker, overlay: Artifact) -> None:
    for show, side, area in (("thumb", 1568, 512 * 512), ("inline", 1568, 1568**2), ("auto", 1568, 512 * 512)):
        answer = sent(worker, show, pictures=[overlay], meta={"sam2-mcp/usage": {"usd": 0}})
        assert kinds(answer) == ["text", "image", "resource_link"] and answer.structured_content is None
        assert answer.meta == {"sam2-mcp/usage": {"usd": 0}}
        _, image, link = answer.content
        assert isinstance(image, ImageContent) and isinstance(link, ResourceLink) and link.uri == overlay.uri
        assert image.annotations is not None and image.annotations.audience == ["user", "assistant"]
        data = base64.b64decode(image.data, validate=True)
        (told,) = facts(answer)["pictures"]
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            assert Image.MIME[picture.format or ""] == image.mime_type == told["mime_type"]
            assert picture.size == (told["width_px"], told["height_px"])
            assert max(picture.size) <= side and picture.width * picture.height <= area
        assert told["artifact"] == overlay.uri and (told["of_width_px"], told["of_height_px"]) == (2000, 900)
        assert (told["bytes"], told["base64_chars"]) == (len(data), len(image.data))
        assert told["sha256"] == hashlib.sha256(data).hexdigest() and len(data) <= told["limit_bytes"]


def test_without_a_picture_the_facts_are_structured_too(worker: RunningWorker, overlay: Artifact) -> None:
    station = read_profile("station; max-answer-bytes=8388608")
    for answer in (sent(worker, "none", pictures=[overlay]), sent(worker, "auto", pictures=[overlay], profile=station)):
        assert kinds(answer) == ["text", "resource_link"] and answer.structured_content == {"fact": "사실"}
        assert "pictures" not in facts(answer)
    assert kinds(sent(worker, "inline", pictures=[overlay], profile=station)) == ["text", "image", "resource_link"]
    assert kinds(sent(worker, "auto", pictures=[overlay], profile=HostProfile("full"))) == kinds(
        sent(worker, "auto", pictures=[overlay])
    )


def test_a_picture_shrinks_into_what_the_host_can_take_and_else_stays_a_link(
    worker: RunningWorker, overlay: Artifact
) -> None:
    narrow = sent(worker, "inline", pictures=[overlay, overlay], profile=HostProfile("station", 64 * 1024))
    assert kinds(narrow) == ["text", "image", "image", "resource_link", "resource_link"]
    assert len(narrow.model_dump_json()) < 64 * 1024
    none = sent(worker, "inline", pictures=[overlay], profile=HostProfile("station", 9 * 1024))
    assert kinds(none) == ["text", "resource_link"]
    assert facts(none)["pictures"][0]["not_shown"].startswith("no_room")


def test_what_cannot_be_shown_is_a_link_and_the_result_says_why(worker: RunningWorker, overlay: Artifact) -> None:
    whole = worker.services.artifacts.get(overlay.handle)[1].read_bytes()
    cases = (
        (artifact(worker, whole[: len(whole) // 2], "image/jpeg"), 60, "image_damaged"),
        (artifact(worker, b"<svg/>", "image/png"), 60, "unsupported_image"),
        (Artifact("art_" + "x" * 22, "gone.png", "image/png", 1), 60, "artifact_unknown"),
        (overlay, 0, "deadline"),
        (swept(worker, whole, "image/jpeg"), 60, "artifact_gone"),
    )
    for picture, within_s, code in cases:
        answer = sent(worker, "thumb", pictures=[picture], within_s=within_s)
        assert kinds(answer) == ["text", "resource_link"] and answer.structured_content == facts(answer)
        assert facts(answer)["pictures"][0]["not_shown"].startswith(code)


@pytest.mark.parametrize("mime_type", [name for name in SAMPLES if name.startswith("audio/")])
def test_sounds_of_every_kind_go_as_they_are_with_their_own_type(worker: RunningWorker, mime_type: str) -> None:
    for make in SAMPLES[mime_type]:
        data = make()
        answer = sent(worker, "inline", sounds=[artifact(worker, data, mime_type)])
        assert kinds(answer) == ["text", "audio", "resource_link"] and answer.structured_content is None
        block = answer.content[1]
        assert isinstance(block, AudioContent) and block.mime_type == mime_type
        assert base64.b64decode(block.data, validate=True) == data
        assert facts(answer)["sounds"][0]["bytes"] == len(data)


def test_a_sound_under_a_wrong_type_or_above_the_cap_is_a_link(worker: RunningWorker) -> None:
    mp3 = SAMPLES["audio/mpeg"][0]()
    for sound, code in (
        (artifact(worker, mp3, "audio/wav"), "media_type_mismatch"),
        (artifact(worker, mp3 + b"\0" * 800_000, "audio/mpeg"), "too_large"),
        (swept(worker, mp3, "audio/mpeg"), "artifact_gone"),
    ):
        answer = sent(worker, "inline", sounds=[sound])
        assert kinds(answer) == ["text", "resource_link"]
        assert facts(answer)["sounds"][0]["not_sent"].startswith(code)
    assert kinds(sent(worker, "thumb", sounds=[artifact(worker, mp3, "audio/mpeg")])) == ["text", "resource_link"]


def test_a_report_is_embedded_whole_on_request_for_people_and_linked_always(worker: RunningWorker) -> None:
    report = artifact(worker, "<p>보고서</p>".encode(), "text/html", "report.html")
    answer = sent(worker, "inline", documents=[report])
    assert kinds(answer) == ["text", "resource_link", "resource"] and answer.structured_content == facts(answer)
    embedded = answer.content[2]
    assert isinstance(embedded, EmbeddedResource) and embedded.annotations is not None
    assert embedded.resource.uri == report.uri and embedded.resource.text == "<p>보고서</p>"  # type: ignore[union-attr]
    assert embedded.annotations.audience == ["user"]
    # The last one is small enough until it is quoted.
    for other in (artifact(worker, data, "text/html") for data in (b"\xff\xfe", b"x" * 800_000, b"\n" * 600_000)):
        assert kinds(sent(worker, "inline", documents=[other])) == ["text", "resource_link"]
    assert kinds(sent(worker, "auto", documents=[report])) == ["text", "resource_link"]


@pytest.mark.parametrize(
    ("header", "profile"),
    [
        (None, HostProfile()),
        ("", HostProfile()),
        ("full", HostProfile("full")),
        ("Station; max-answer-bytes=1024", HostProfile("station", 1024)),
        ("station;max-answer-bytes= 7 ", HostProfile("station", 7)),
        ("station; max-answer-bytes=-5", HostProfile("station")),
        ("station; max-answer-bytes=" + "9" * 500, HostProfile("station")),
        ("station; other=5", HostProfile("station")),
        ("auto; max-answer-bytes=٣", HostProfile("auto")),
    ],
)
def test_the_profile_in_the_header_is_read_and_nonsense_is_as_good_as_none(
    header: str | None, profile: HostProfile
) -> None:
    assert read_profile(header) == profile


def test_no_work_directory_and_no_picture_stays_behind(worker: RunningWorker, overlay: Artifact) -> None:
    sent(worker, "thumb", pictures=[overlay])
    assert not [path for path in Path(worker.services.work_root).iterdir() if "picture" in path.name]
