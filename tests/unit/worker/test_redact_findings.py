"""What a redaction tells of itself, and how its file is kept or not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sam2_mcp_worker.pipelines.redact_findings import Findings, keep, output_name
from sam2_mcp_worker.pipelines.redact_phrases import Match, ReadLine
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

LINES = [ReadLine("보험 증권 안내", (0, 0, 9, 9), exact=False)]
PLACES = [{"page_number": 3}]


@pytest.fixture
def services(tmp_path: Path) -> Services:
    (tmp_path / "kor.traineddata").touch()
    return Services(Settings(tessdata_dir=tmp_path, data_dir=tmp_path / "data"))


def test_it_is_done_only_when_everything_asked_for_was_found_and_could_be_read() -> None:
    findings = Findings(("홍길동", "보험 증권 안네"))
    assert findings.status == "nothing_covered"
    findings.cover_match(Match(0, (0,), "near", "홍길둥"), source="ocr")
    findings.cover_match(Match(1, (0,), "exact", ""), source="ocr")
    assert findings.status == "done"
    assert findings.covered[0]["read_as"] == "홍길둥"
    assert "read_as" not in findings.covered[1]
    findings.incomplete.append("3 areas could not be read")
    assert findings.status == "incomplete"


def test_a_phrase_that_was_not_found_is_named_with_the_closest_reading() -> None:
    findings = Findings(("보험 증권 안네", "전혀 다른 말씀"))
    findings.cover_region(1, source="box")
    findings.miss(LINES, PLACES)
    assert findings.status == "incomplete"
    first, second = findings.not_found
    assert first["closest"]["text"] == "보험 증권 안내"
    assert first["closest"]["page_number"] == 3
    assert second == {"phrase": "전혀 다른 말씀"}


def test_reversible_methods_and_given_places_are_told_as_what_they_are() -> None:
    findings = Findings()
    findings.cover_region(1, source="box")
    told = findings.to_json("fill", None)
    assert told["method_note"] is None
    assert "elsewhere" in told["not_verified"][0]


@pytest.mark.parametrize(
    ("name", "phrases", "expected"),
    [
        ("leaflet.jpg", ["홍길동"], "leaflet-redacted.png"),
        ("홍 길동 증권.jpg", ["홍길동"], "redacted.png"),
        ("SECRET.v2.pdf", ["secret"], "redacted.png"),
        ("noname", [], "noname-redacted.png"),
    ],
)
def test_a_name_that_tells_the_secret_is_not_kept(name: str, phrases: list[str], expected: str) -> None:
    assert output_name(name, ".png", phrases) == expected


async def test_a_verified_file_is_moved_into_the_artifacts(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    path.write_bytes(b"pixels")
    artifact = await keep(services, path, name="a.png", mime_type="image/png")
    assert not path.exists()
    about, stored = services.artifacts.get(artifact.handle)
    assert (about.name, about.size_bytes, stored.read_bytes()) == ("a.png", 6, b"pixels")


async def test_a_call_that_is_cancelled_while_its_file_is_kept_leaves_none(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    path.write_bytes(b"pixels")
    task = asyncio.create_task(keep(services, path, name="a.png", mime_type="image/png"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(services.artifacts.entries()) == []


def test_what_reading_cannot_see_is_said_with_every_phrase() -> None:
    findings = Findings(("홍길동",))
    findings.cover_match(Match(0, (0,), "exact", ""), source="ocr")
    (told,) = findings.to_json("fill", None)["not_verified"]
    assert "turned" in told
    assert "misreads" in told
