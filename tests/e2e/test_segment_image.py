"""segment_image on a real worker with a real network: the right pixels, every object once, and slips by name."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.station import loader
from deploy.station.minimal_station.contract import Timings
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker, serving
from tests.e2e.segmenting import GOOD_IOU, fetched, mask_of, on_loop, saved
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.shapes import Scene, iou, scene, tight_box
from tests.models import OnnxPair
from tests.unit.station.harness import running_station

from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Segmenter
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import decode_runs, expand_runs
from sam2_mcp_worker.pipelines.mask_pictures import draw_overlay
from sam2_mcp_worker.pipelines.segment_image import Request, segment_image
from sam2_mcp_worker.settings import Settings

# A polygon of at most 40 vertices lies up to 1.5 px off the edge of objects that are 60 to 100 px large.
POLYGON_IOU = 0.92


@pytest.fixture(scope="module")
def drawn() -> Scene:
    return scene()


@pytest.fixture(scope="module")
def hurried(onnx_pair: OnnxPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A worker whose calls end before a picture is embedded, and whose results hold few objects."""
    yield from serving(
        Settings(
            port=0,
            data_dir=tmp_path_factory.mktemp("hurried"),
            ocr_processes=1,
            call_budget_s=0.55,
            reply_margin_s=0.2,
            result_max_chars=4000,
            **onnx_pair.settings(),
        )
    )


def drawn_polygons(found: dict[str, Any], size: tuple[int, int]) -> NDArray[np.bool_]:
    canvas = Image.new("L", size)
    pen = ImageDraw.Draw(canvas)
    for polygon in found["polygons"]:
        # Vertices are corners of pixels; Pillow draws to centres: half a pixel is within the tolerance.
        pen.polygon([tuple(point) for point in polygon["outer"]], fill=255)
        for hole in polygon.get("holes", []):
            pen.polygon([tuple(point) for point in hole], fill=0)
    return np.asarray(canvas) > 127


async def test_boxes_and_points_give_the_exact_objects_in_their_order(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    by_box = await agent.call("segment_image", source=handle, boxes=[list(box) for box in reversed(drawn.boxes)])
    points = [{"object_number": n, "x_px": x, "y_px": y} for n, (x, y) in enumerate(drawn.points, start=1)]
    by_point = await agent.call("segment_image", source=handle, points=points)
    for result, truths in ((by_box, drawn.truths[::-1]), (by_point, drawn.truths)):
        assert [found["number"] for found in result["objects"]] == [1, 2, 3]
        assert result["coverage"] == {"total": 3, "done": 3, "failed": [], "unreached": []}
        assert "cursor" not in result and "next_step" not in result
        for found, truth in zip(result["objects"], truths, strict=True):
            mask = mask_of(segmenting_worker, found)
            assert mask.shape == truth.shape
            assert iou(mask, truth) > GOOD_IOU
            assert found["box_xyxy_px"] == list(tight_box(mask))
            assert found["area_px"] == np.count_nonzero(mask)
            assert found["area_pct"] == pytest.approx(100 * mask.mean(), abs=0.01)
            assert found["touches_border"] is False
            assert 0.9 < found["predicted_iou"] <= 1 and 0.9 < found["stability"] <= 1
            assert iou(drawn_polygons(found, drawn.picture.size), mask) > POLYGON_IOU


async def test_a_negative_point_takes_a_part_away_and_a_box_and_points_work_together(
    segmenting_worker: RunningWorker, tmp_path: Path
) -> None:
    picture = Image.new("RGB", (300, 200), (230, 230, 230))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((40, 60, 150, 140), fill=(200, 40, 40))
    pen.rectangle((150, 60, 260, 140), fill=(40, 60, 180))
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(picture, tmp_path / "two.png"))
    points = [
        {"object_number": 1, "x_px": 90, "y_px": 100},
        {"object_number": 1, "x_px": 210, "y_px": 100, "positive": False},
    ]
    result = await agent.call("segment_image", source=handle, boxes=[[35, 55, 265, 145]], points=points)
    mask = mask_of(segmenting_worker, result["objects"][0])
    assert mask[100, 90] and not mask[100, 210]


async def test_the_overlay_shows_every_object_and_coco_tools_read_the_masks(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    result = await agent.call("segment_image", source=handle, boxes=[list(box) for box in drawn.boxes])
    with Image.open(io.BytesIO(fetched(segmenting_worker, result["overlay"]))) as overlay:
        assert overlay.format == "JPEG"
        assert drawn.picture.width <= overlay.width and drawn.picture.height < overlay.height
    document = json.loads(fetched(segmenting_worker, result["coco"]))
    assert [annotation["id"] for annotation in document["annotations"]] == [1, 2, 3]
    for annotation, found in zip(document["annotations"], result["objects"], strict=True):
        assert annotation["segmentation"]["size"] == [drawn.picture.height, drawn.picture.width]
        mask = decode_runs(expand_runs(annotation["segmentation"]["counts"]), drawn.picture.size)
        assert mask.box_xyxy_px is not None
        assert list(mask.box_xyxy_px) == found["box_xyxy_px"]
        assert mask.area_px == annotation["area"] == found["area_px"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({}, "prompt_missing", "boxes"),
        ({"boxes": [[400, 10, 500, 90]]}, "prompt_outside", "320 x 240"),
        ({"points": [{"object_number": 1, "x_px": 320, "y_px": 5}]}, "prompt_outside", "320 x 240"),
        ({"boxes": [[90, 10, 50, 90]]}, "box_invalid", "not width and height"),
        ({"boxes": [[0.1, 0.2, 0.5, 0.9]]}, "invalid_arguments", "boxes.0.0"),
        ({"boxes": [[1, 2, 3]]}, "invalid_arguments", "boxes.0"),
        ({"boxes": [[1, 2, 3, 4]] * 101}, "too_many_objects", "at most 100"),
        ({"points": [{"object_number": 2, "x_px": 5, "y_px": 5}]}, "object_number_gap", "object 1"),
        ({"points": [{"object": 1, "x_px": 5, "y_px": 5}]}, "invalid_arguments", "object_number"),
        ({"boxes": [[1, 2, 30, 40]], "quality": "best"}, "invalid_arguments", "quality"),
        ({"boxes": [[1, 2, 30, 40]], "cursor": "abc"}, "cursor_invalid", "without cursor"),
    ],
)
async def test_slips_are_named_with_the_rule(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path, arguments: dict[str, Any], code: str, said: str
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    with pytest.raises(ToolFailure) as caught:
        await agent.call("segment_image", source=handle, **arguments)
    assert str(caught.value).startswith(f"[{code}]")
    assert said in str(caught.value)


async def test_a_box_over_the_edge_is_cut_there_and_that_is_said(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    result = await agent.call("segment_image", source=handle, boxes=[[-5, -5, 120, 130]])
    assert result["notes"] == ["box 1 reached over the edge of the picture and was cut to [0, 0, 120, 130]"]


async def test_without_an_engine_the_error_says_why_and_the_mend(
    worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    with pytest.raises(ToolFailure, match=r"^\[not_available\].*models fetch"):
        await agent.call("segment_image", source=handle, boxes=[[1, 2, 30, 40]])


async def test_a_repeated_call_asks_no_child_for_anything(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    arguments: dict[str, Any] = {"source": handle, "boxes": [list(box) for box in drawn.boxes], "quality": "fast"}
    first = await agent.call("segment_image", **arguments)
    services = segmenting_worker.services
    before = [child.tasks for pool in services.pools for child in pool.stats().children]
    await on_loop(segmenting_worker, forget_jobs(segmenting_worker))
    assert await agent.call("segment_image", **arguments) == first
    assert [child.tasks for pool in services.pools for child in pool.stats().children] == before


async def test_files_that_were_swept_are_made_again(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    arguments: dict[str, Any] = {
        "source": await agent.upload(saved(drawn.picture, tmp_path / "shapes.png")),
        "boxes": [list(box) for box in drawn.boxes[:2]],
    }
    first = await agent.call("segment_image", **arguments)
    for swept in (first["overlay"], first["objects"][1]["mask"]):
        segmenting_worker.services.artifacts.discard(swept.removeprefix("artifact://"))
    await on_loop(segmenting_worker, forget_jobs(segmenting_worker))
    again = await agent.call("segment_image", **arguments)
    assert again["objects"][0] == first["objects"][0]
    assert again["objects"][1] == first["objects"][1] | {"mask": again["objects"][1]["mask"]}
    assert iou(mask_of(segmenting_worker, again["objects"][1]), drawn.truths[1]) > GOOD_IOU
    assert fetched(segmenting_worker, again["overlay"])


async def test_an_overlay_that_cannot_be_drawn_costs_no_mask(segmenting_worker: RunningWorker, tmp_path: Path) -> None:
    gone = PixelFile(tmp_path / "gone.rgb", 10, 10)
    drawing = draw_overlay(segmenting_worker.services, gone, [], {}, tmp_path, "t")
    assert await on_loop(segmenting_worker, drawing) is None


async def forget_jobs(worker: RunningWorker) -> None:
    """As if the worker had been started anew: what is left is on the disk."""
    await worker.services.jobs.close()


async def test_calls_that_end_early_name_what_was_not_reached_and_the_cursor_brings_every_object_once(
    hurried: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(hurried)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    boxes = [[x, y, x + 60, y + 50] for x in range(0, 240, 60) for y in range(0, 150, 50)]
    results = await agent.follow("segment_image", source=handle, boxes=boxes)
    assert results[0]["objects"] == [] and results[0]["coverage"]["unreached"] == list(range(1, 13))
    assert "cursor" in results[0]["next_step"]
    assert [found["number"] for result in results for found in result["objects"]] == list(range(1, 13))
    assert sum(bool(result["objects"]) for result in results) > 1
    assert all(len(json.dumps(result)) < 4000 for result in results)
    assert results[-1]["coverage"] == {"total": 12, "done": 12, "failed": [], "unreached": []}


async def test_four_parallel_calls_give_what_four_calls_in_turn_give(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    boxes = [list(box) for box in drawn.boxes]
    wanted = [[boxes[0]], [boxes[1], boxes[2]], boxes, boxes[::-1]]

    async def cut(handle: str, number: int) -> list[Any]:
        result = await agent.call("segment_image", source=handle, boxes=wanted[number])
        return [{key: value for key, value in found.items() if key != "mask"} for found in result["objects"]]

    # The same pixels in files of their own: the parallel calls share nothing but the network.
    paths = [saved(drawn.picture, tmp_path / f"{level}.png", compress_level=level) for level in (1, 4, 6, 9)]
    handles = [await agent.upload(path) for path in paths]
    assert len(set(handles)) == 4
    in_parallel = await asyncio.gather(*(cut(handle, number) for number, handle in enumerate(handles)))
    assert in_parallel == [await cut(handles[0], number) for number in range(4)]


async def test_a_cancelled_call_leaves_no_job_and_no_file(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    path = saved(drawn.picture.resize((330, 250)), tmp_path / "other.png")
    handle = await Agent(segmenting_worker).upload(path)
    services = segmenting_worker.services

    async def cancelled() -> tuple[int, list[Path]]:
        request = Request(handle, boxes=[[10, 10, 100, 100], [20, 20, 90, 90]])
        with deadline_scope(Deadline.after(20)):
            call = asyncio.create_task(segment_image(services, request))
        while services.sam_pool is None or services.sam_pool.stats().busy == 0:
            assert not call.done()
            await asyncio.sleep(0.005)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while services.jobs.running:
            await asyncio.sleep(0.005)
        return services.jobs.running, list(services.work_root.iterdir())

    assert await on_loop(segmenting_worker, cancelled()) == (0, [])
    result = await Agent(segmenting_worker).call("segment_image", source=handle, boxes=[[10, 10, 100, 100]])
    assert result["coverage"]["done"] == 1


async def test_an_agent_behind_station_and_bridge_gets_the_masks(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    handle = await Agent(segmenting_worker).upload(saved(drawn.picture, tmp_path / "shapes.png"))
    environment = {"SAM2_MCP_URL": f"{segmenting_worker.base_url}/mcp", "SAM2_MCP_TOKEN": segmenting_worker.token}
    async with running_station(Timings()) as station:
        session = await station.start("sam2_mcp_bridge", command="-m", env_vars=environment)
        # The loader drops the schema, so a model wraps its arguments (reference/station.md 1.6).
        arguments = {"kwargs": {"source": handle, "boxes": [list(drawn.boxes[0])], "points": []}}
        answer = await loader.call_tool(station.http, session, "segment_image", arguments, 30.0)
    result = json.loads(answer)
    assert iou(mask_of(segmenting_worker, result["objects"][0]), drawn.truths[0]) > GOOD_IOU


class Poisoned:
    """The real network, but for one prompt on which it breaks, with all that are asked for together with it."""

    def __init__(self, segmenter: Segmenter, poison: list[int]) -> None:
        self._segmenter = segmenter
        self._poison = poison
        self.identity = f"poisoned {poison} {segmenter.identity}"
        self.encode = segmenter.encode

    async def masks(self, pixels: Any, key: str, prompts: Sequence[ObjectPrompt], **options: Any) -> list[ObjectMask]:
        if any(prompt.to_params()["box"] == self._poison for prompt in prompts):
            raise WorkerError("decoder_crashed", "the sam process ended while it read this input")
        return await self._segmenter.masks(pixels, key, prompts, **options)


@pytest.fixture
def poison(segmenting_worker: RunningWorker) -> Iterator[list[int]]:
    services, box = segmenting_worker.services, [5, 5, 20, 20]
    segmenter = services.segmenter
    assert segmenter is not None
    services.segmenter = Poisoned(segmenter, box)
    yield box
    services.segmenter = segmenter


async def test_an_object_that_breaks_the_network_takes_no_neighbour_along(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path, poison: list[int]
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    boxes = [list(drawn.boxes[0]), poison, list(drawn.boxes[1])]
    result = await agent.call("segment_image", source=handle, boxes=boxes)
    assert [found["status"] for found in result["objects"]] == ["done", "failed", "done"]
    assert result["objects"][1]["reason"].startswith("decoder_crashed")
    assert result["coverage"] == {"total": 3, "done": 2, "failed": [2], "unreached": []}
    assert iou(mask_of(segmenting_worker, result["objects"][2]), drawn.truths[1]) > GOOD_IOU
    assert result["overlay"] and result["coco"]
    with pytest.raises(ToolFailure, match=r"^\[decoder_crashed\]"):
        await agent.call("segment_image", source=handle, boxes=[poison])


async def test_what_failed_is_tried_again_by_the_same_call(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path, poison: list[int]
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(drawn.picture, tmp_path / "shapes.png"))
    both: dict[str, Any] = {"source": handle, "boxes": [list(drawn.boxes[0]), list(poison)]}
    alone: dict[str, Any] = {"source": handle, "boxes": [list(poison)], "quality": "fast"}
    assert (await agent.call("segment_image", **both))["coverage"]["failed"] == [2]
    with pytest.raises(ToolFailure, match=r"^\[decoder_crashed\]"):
        await agent.call("segment_image", **alone)
    poison[:] = [-1, -1, -1, -1]  # no prompt is like that: whatever was wrong with the network is over
    assert (await agent.call("segment_image", **both))["coverage"]["failed"] == []
    assert (await agent.call("segment_image", **alone))["coverage"]["done"] == 1


async def test_a_call_while_the_network_loads_says_so_in_time_and_the_next_one_has_the_masks(
    onnx_pair: OnnxPair, tmp_path: Path
) -> None:
    settings = Settings(port=0, data_dir=tmp_path / "data", ocr_processes=1, call_budget_s=5, **onnx_pair.settings())
    for worker in serving(settings):
        pool = worker.services.sam_pool
        assert pool is not None
        agent = Agent(worker)
        source = await agent.upload(saved(scene().picture, tmp_path / "scene.png"))
        before = pool.stats().children[0].pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        while (loading := pool.stats().children[0].pid) in (None, before):
            await asyncio.sleep(0.01)
        os.kill(loading, signal.SIGSTOP)  # takes as long as it takes
        try:
            facts = await agent.call("segment_image", source=source, boxes=[[10, 10, 100, 100]])
        finally:
            os.kill(loading, signal.SIGCONT)
        assert facts["coverage"]["unreached"] == [1]
        assert any("loading" in note for note in facts["notes"])
        rest = await agent.follow("segment_image", source=source, boxes=[[10, 10, 100, 100]])
        assert rest[-1]["coverage"]["done"] == 1
        assert "notes" not in rest[-1]


async def test_a_lost_network_is_an_error_that_says_what_helps(onnx_pair: OnnxPair, tmp_path: Path) -> None:
    settings = Settings(port=0, data_dir=tmp_path / "data", ocr_processes=1, step_timeout_s=1, **onnx_pair.settings())
    for worker in serving(settings):
        pool = worker.services.sam_pool
        assert pool is not None
        child = pool.stats().children[0].pid
        assert child is not None
        os.kill(child, signal.SIGSTOP)
        agent = Agent(worker)
        source = await agent.upload(saved(scene().picture, tmp_path / "scene.png"))
        with pytest.raises(ToolFailure, match=r"^\[decoder_timeout\].*fewer objects"):
            await agent.call("segment_image", source=source, boxes=[[10, 10, 100, 100]])
