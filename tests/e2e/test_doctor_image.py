"""`doctor image`: a picture is followed along the whole road, and a stage that fails is named with what to do."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import (
    Annotations,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from PIL import Image
from tests.conftest import RunningWorker, serving

from sam2_mcp_worker.cli import doctor_image
from sam2_mcp_worker.cli import image_blocks as blocks
from sam2_mcp_worker.cli.doctor_image import diagnose
from sam2_mcp_worker.cli.drawn_picture import COLOURS, draw_test_picture
from sam2_mcp_worker.cli.image_record import Record
from sam2_mcp_worker.cli.parser import run
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.settings import Settings

STAGES = [
    "the worker",
    "the file",
    "upload",
    "tool call",
    "image block",
    "order of the blocks",
    "strict Base64",
    "type",
    "bounded decoding",
    "same picture",
    "facts in the text",
    "resources/list",
    "resources/read",
    "the bridge and the host",
    "shown to the person",
    "given to the model",
]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    settings = Settings(port=0, data_dir=tmp_path_factory.mktemp("doctor"), ocr_processes=1, segmenter="off")
    yield from serving(settings)


def states(record: Record) -> dict[str, str]:
    return {stage.stage: stage.state for stage in record.stages}


def failed(record: Record) -> list[str]:
    return [stage.stage for stage in record.stages if stage.state == "failed"]


def png(colour: tuple[int, int, int] = (10, 120, 200), size: tuple[int, int] = (40, 30)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
async def drawn(worker: RunningWorker) -> Record:
    """The record of a test picture."""
    return await diagnose(None, worker.base_url)


async def test_a_test_picture_comes_through_every_stage_that_can_be_seen_from_here(drawn: Record) -> None:
    record = drawn
    assert [stage.stage for stage in record.stages] == STAGES
    assert failed(record) == []
    assert [s for s, state in states(record).items() if state == "not verifiable from here"] == STAGES[-3:]
    assert [block["type"] for block in record.blocks] == ["text", "image", "resource_link"]
    assert record.versions["server"].startswith("sam2-mcp ")
    assert record.versions["SDK"].startswith("mcp 2.")
    assert record.mcp_revision == "2025-11-25"
    assert len(record.next_steps) == 3


async def test_the_record_is_without_bytes_and_no_block_names_the_shape(drawn: Record) -> None:
    record = drawn
    text = json.dumps(record.to_json())
    assert "iVBORw0KGgo" not in text
    assert "iVBORw0KGgo" not in record.to_text()
    # The shape is told to the person only, where the model's answer is compared.
    before_host = json.dumps([record.blocks, [stage.detail for stage in record.stages[:-3]]])
    assert not re.search(rf"\b({'|'.join(COLOURS)})\b", before_host)
    assert any(colour in record.next_steps[-1] for colour in COLOURS)


async def test_a_large_photo_is_stepped_down_and_still_the_same_picture(worker: RunningWorker, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    gradient = Image.linear_gradient("L").resize((2400, 1800))
    Image.merge("RGB", (gradient, gradient.rotate(180), gradient)).save(path, quality=90)
    record = await diagnose(path, worker.base_url)
    assert failed(record) == []
    details = {stage.stage: stage.detail for stage in record.stages}
    assert "2400 x 1800 px" in details["the file"]
    assert "1568 x 1176 px" in details["bounded decoding"]
    assert "2400 x 1800 px" in details["resources/read"]


async def test_a_file_that_is_no_picture_or_cut_short_fails_where_it_comes_in(
    worker: RunningWorker, tmp_path: Path
) -> None:
    for name, data in (("note.png", b"not a picture at all"), ("cut.png", png(size=(300, 300))[:200])):
        path = tmp_path / name
        path.write_bytes(data)
        record = await diagnose(path, worker.base_url)
        assert failed(record) == ["the file"]
        assert "upload" not in states(record)
        assert len(record.next_steps) == 1
    assert failed(await diagnose(tmp_path / "absent.png", worker.base_url)) == ["the file"]
    assert failed(await diagnose(Path("/dev/zero"), worker.base_url)) == ["the file"]


async def test_a_name_that_promises_another_type_is_told_and_the_road_still_followed(
    worker: RunningWorker, tmp_path: Path
) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(png())
    record = await diagnose(path, worker.base_url)
    assert failed(record) == ["the file"]
    assert states(record)["resources/read"] == "confirmed"
    assert "rename the file" in record.next_steps[0]


async def test_a_worker_that_is_not_there_is_the_first_finding() -> None:
    record = await diagnose(None, "http://127.0.0.1:9")
    assert failed(record) == ["the worker"]
    assert "serve" in record.next_steps[0]


async def test_a_picture_that_the_answer_has_no_room_for_is_told_with_the_setting(
    worker: RunningWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = worker.services.settings.model_copy(update={"max_image_block_bytes": 1024})
    monkeypatch.setattr(worker.services, "settings", small)
    record = await diagnose(None, worker.base_url)
    assert failed(record) == ["image block"]
    assert "no_room" in next(stage.detail for stage in record.stages if stage.stage == "image block")
    assert "SAM2_MCP_MAX_IMAGE_BLOCK_BYTES" in record.next_steps[0]
    assert states(record)["resources/list"] == "confirmed"


def test_the_command_prints_the_record_for_people_or_programs_and_says_by_its_code_whether_a_stage_failed(
    worker: RunningWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "image", "--url", worker.base_url]) == 0
    text = capsys.readouterr().out
    assert "confirmed                 bounded decoding" in text
    assert "not verifiable from here  given to the model" in text
    assert run(["doctor", "image", "--url", "http://127.0.0.1:9", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["stages"][0]["state"] == "failed"
    assert run(["doctor", "--url", worker.base_url]) == 3
    assert "doctor image --url" in capsys.readouterr().err


def result(*content: Any, structured: dict[str, Any] | None = None) -> CallToolResult:
    return CallToolResult(content=list(content), structured_content=structured)


def image(data: str, mime_type: str = "image/png") -> ImageContent:
    return ImageContent(
        type="image", data=data, mime_type=mime_type, annotations=Annotations(audience=["user", "assistant"])
    )


TEXT = TextContent(type="text", text='{"pictures": [{"not_shown": "too_large: 9 bytes"}]}')
LINK = ResourceLink(type="resource_link", name="a.png", uri="artifact://art_1")
BLOB = EmbeddedResource(type="resource", resource=BlobResourceContents(uri="artifact://art_1", blob="aGVsbG8="))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ((TextContent(type="text", text="data:image/png;base64,iVBORw0KGgo"),), "Base64 inside a text block"),
        ((TEXT, LINK), "only the place.*too_large: 9 bytes"),
        ((TextContent(type="text", text="no JSON"), LINK), r"only the place of the picture came \(resource_link\)"),
        ((TextContent(type="text", text="[]"), BLOB), "embedded resource"),
        ((TEXT,), "no block holds a picture"),
    ],
)
def test_each_shape_in_which_a_picture_may_come_has_its_own_mend(content: tuple[Any, ...], said: str) -> None:
    with pytest.raises(WorkerError, match=said) as caught:
        blocks.image_block(result(*content))
    assert caught.value.next_step


def test_text_comes_first_and_nothing_structured_beside_a_picture() -> None:
    picture = image(base64.b64encode(png()).decode())
    assert "2 blocks" in blocks.check_order(result(TEXT, picture))
    with pytest.raises(WorkerError, match="text_not_first"):
        blocks.check_order(result(picture, TEXT))
    with pytest.raises(WorkerError, match="structured_beside_picture"):
        blocks.check_order(result(TEXT, picture, structured={}))


def test_blocks_are_described_without_their_contents() -> None:
    told = blocks.describe_blocks([TEXT, image("AAAA"), LINK, BLOB])
    assert told[1] == {
        "type": "image",
        "mime_type": "image/png",
        "base64_characters": 4,
        "audience": "user+assistant",
    }
    assert told[3] == {"type": "resource", "mime_type": "none", "holds": "blob"}
    assert "AAAA" not in json.dumps(told) and "aGVs" not in json.dumps(told)


@pytest.mark.parametrize("data", ["data:image/png;base64,AAAA", "AAA", "AA AA", "A" * 5_000_000])
def test_data_that_is_no_strict_base64_or_too_long_is_said_to_have_been_changed_on_the_way(data: str) -> None:
    with pytest.raises(WorkerError, match="base64") as caught:
        blocks.decoded_data(data)
    assert "straight to the worker" in caught.value.next_step


async def test_a_picture_of_another_type_or_a_cut_one_does_not_pass_for_whole(
    decoders: ChildPool, tmp_path: Path
) -> None:
    with pytest.raises(WorkerError, match="media_type_mismatch"):
        blocks.check_declared(png(), "image/jpeg")
    with pytest.raises(WorkerError, match="image_damaged"):
        await blocks.decode(decoders, png(size=(300, 300))[:300], tmp_path, "cut")
    with pytest.raises(WorkerError, match="image_too_large"):
        await blocks.decode(decoders, png(size=(300, 300)), tmp_path, "large", max_pixels=1000)


async def test_another_picture_than_the_one_sent_does_not_pass_for_the_same(
    decoders: ChildPool, tmp_path: Path
) -> None:
    drawn = draw_test_picture()
    with Image.open(io.BytesIO(drawn.png)) as sent:
        x, y = drawn.centre_px
        erased = sent.convert("RGB")
        erased.paste(erased.getpixel((2, 2)), (x - 30, y - 30, x + 30, y + 30))
    out = io.BytesIO()
    erased.save(out, "PNG")
    walk = doctor_image._Walk(Record(""), decoders, tmp_path, tmp_path / "none", drawn, 10**6, 10**6)
    walk.original = await blocks.decode(decoders, drawn.png, tmp_path, "sent")
    walk.decoded = walk.original
    assert (await walk.same()).startswith("100 of 100")
    walk.decoded = await blocks.decode(decoders, png(), tmp_path, "another")
    with pytest.raises(WorkerError, match="another_picture"):
        await walk.same()
    walk.original = walk.decoded = await blocks.decode(decoders, out.getvalue(), tmp_path, "erased")
    with pytest.raises(WorkerError, match="shape_missing"):
        await walk.same()


async def test_every_shape_of_the_test_picture_is_where_it_is_said_to_be(decoders: ChildPool, tmp_path: Path) -> None:
    seen = set()
    for number in range(12):
        drawn = draw_test_picture()
        seen.add(drawn.element)
        decoded = await blocks.decode(decoders, drawn.png, tmp_path, f"drawn-{number}")
        x, y = drawn.centre_px
        assert blocks.colour_at(decoded.pixels, x / 320, y / 200) == drawn.colour
    assert len(seen) > 1


def test_what_ends_the_walk_early_is_named_by_the_first_error_in_the_group() -> None:
    inner = WorkerError("worker_refused", "the worker answered 401")
    group = ExceptionGroup("unhandled", [ExceptionGroup("again", [inner])])
    assert doctor_image._named(group) is inner
    assert doctor_image._named(RuntimeError("gone")).what == "RuntimeError: gone"
