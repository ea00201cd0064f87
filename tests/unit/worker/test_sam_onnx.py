"""The ONNX engine: real masks of the pinned MobileSAM pair, and other pairs by the names of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data, filters, measure, morphology, segmentation
from tests.fakes import onnx_pairs
from tests.fakes.onnx_pairs import SIDE_PX, Pair, decoder, encoder, tiny_pair
from tests.models import DECODER_SHA256, ENCODER_SHA256, OnnxPair

from sam2_mcp_worker.engines.ports import Box, ObjectPrompt
from sam2_mcp_worker.engines.sam_onnx import OnnxEmbedding, OnnxPredictor, network_input, prompt_arrays, scaled_size
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import cut_mask

Bools = NDArray[np.bool_]
THREADS = 2


@pytest.fixture(scope="module")
def mobile_sam(onnx_pair: OnnxPair) -> OnnxPredictor:
    return OnnxPredictor(onnx_pair.encoder, ENCODER_SHA256, onnx_pair.decoder, DECODER_SHA256, threads=THREADS)


def masks_of(
    predictor: OnnxPredictor, embedding: OnnxEmbedding, prompts: Sequence[ObjectPrompt]
) -> list[tuple[Bools, float]]:
    """Each prompt's mask in the whole picture, and its predicted IoU."""
    width, height = embedding.size_px
    found = []
    for logits in predictor.decode(embedding, prompts):
        mask = cut_mask(logits.logits, (0, 0, width, height), logits.extent_xy)
        full = np.zeros((height, width), bool)
        if mask.box_xyxy_px is not None:
            x0, y0, x1, y1 = mask.box_xyxy_px
            full[y0:y1, x0:x1] = mask.inside
        found.append((full, logits.predicted_iou))
    return found


def iou(a: Bools, b: Bools) -> float:
    return float(np.count_nonzero(a & b) / np.count_nonzero(a | b))


def box_around(mask: Bools) -> Box:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def loosened(box: Box, share: float, size: tuple[int, int]) -> Box:
    dx, dy = share * (box[2] - box[0]), share * (box[3] - box[1])
    x0, y0, x1, y1 = box
    return max(0, int(x0 - dx)), max(0, int(y0 - dy)), min(size[0], int(x1 + dx)), min(size[1], int(y1 + dy))


@pytest.fixture(scope="module")
def coins() -> tuple[NDArray[np.uint8], list[Bools]]:
    """The coins photograph of scikit-image, and its 24 coins as edges, flooding and filled holes give them."""
    grey = data.coins()
    markers = np.where(grey < 30, 1, np.where(grey > 150, 2, 0))
    filled = ndimage.binary_fill_holes(segmentation.watershed(filters.sobel(grey), markers) == 2)
    labels = measure.label(morphology.opening(filled, morphology.disk(3)))
    found = [labels == region.label for region in measure.regionprops(labels) if region.area > 500]
    assert len(found) == 24
    return np.repeat(grey[:, :, None], 3, axis=2), found


@pytest.fixture(scope="module")
def coins_embedding(mobile_sam: OnnxPredictor, coins: tuple[NDArray[np.uint8], list[Bools]]) -> OnnxEmbedding:
    return mobile_sam.encode(coins[0], "accurate")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
def test_coins_are_cut_from_their_boxes_even_from_loose_ones(
    mobile_sam: OnnxPredictor,
    coins: tuple[NDArray[np.uint8], list[Bools]],
    coins_embedding: OnnxEmbedding,
    share: float,
) -> None:
    truth = coins[1]
    boxes = [loosened(box_around(coin), share, coins_embedding.size_px) for coin in truth]
    # In an order of its own, so that masks in any other order than that of the prompts would not match.
    order = np.random.default_rng(3).permutation(len(boxes))
    found = masks_of(mobile_sam, coins_embedding, [ObjectPrompt(boxes[i]) for i in order])
    scores = [iou(mask, truth[i]) for i, (mask, _) in zip(order, found, strict=True)]
    assert np.mean(scores) >= 0.95
    assert min(scores) >= 0.93


def test_one_point_is_enough_for_a_coin_and_a_negative_point_takes_its_neighbour_out(
    mobile_sam: OnnxPredictor, coins: tuple[NDArray[np.uint8], list[Bools]], coins_embedding: OnnxEmbedding
) -> None:
    (x0, y0, x1, y1), (u0, v0, u1, v1) = box_around(coins[1][0]), box_around(coins[1][1])
    a, b = ((x0 + x1) // 2, (y0 + y1) // 2), ((u0 + u1) // 2, (v0 + v1) // 2)
    both = (min(x0, u0), min(y0, v0), max(x1, u1), max(y1, v1))
    point, without = masks_of(
        mobile_sam,
        coins_embedding,
        [ObjectPrompt(None, ((*a, True),)), ObjectPrompt(both, ((*a, True), (*b, False)))],
    )
    assert iou(point[0], coins[1][0]) >= 0.95
    assert not without[0][b[1], b[0]]
    assert without[0][a[1], a[0]]


def drawn_shapes() -> tuple[NDArray[np.uint8], dict[str, Bools]]:
    """Six shapes of known pixels on one picture of 640 x 480."""
    star = [(0.42 if i % 2 else 1.0, i * np.pi / 5 - np.pi / 2) for i in range(10)]
    spikes = np.array([(330 + 75 * r * np.cos(a), 110 + 75 * r * np.sin(a)) for r, a in star], np.int32)
    canvases = {
        name: np.zeros((480, 640), np.uint8) for name in ("circle", "ellipse", "rect", "star", "triangle", "ring")
    }
    cv2.circle(canvases["circle"], (110, 110), 65, 1, -1)
    cv2.ellipse(canvases["ellipse"], (520, 110), (85, 45), 25, 0, 360, 1, -1)
    cv2.rectangle(canvases["rect"], (50, 290), (170, 400), 1, -1)
    cv2.fillPoly(canvases["star"], [spikes], 1)
    cv2.fillPoly(canvases["triangle"], [np.array([(250, 420), (400, 420), (330, 280)], np.int32)], 1)
    cv2.circle(canvases["ring"], (530, 340), 70, 1, 28)
    colours = [(180, 40, 40), (40, 120, 60), (50, 60, 170), (150, 110, 30), (110, 40, 130), (30, 110, 130)]
    picture = np.full((480, 640, 3), (226, 222, 214), np.uint8)
    for canvas, colour in zip(canvases.values(), colours, strict=True):
        picture[canvas > 0] = colour
    return picture, {name: canvas > 0 for name, canvas in canvases.items()}


@pytest.fixture(scope="module")
def shapes(mobile_sam: OnnxPredictor) -> tuple[dict[str, Bools], dict[str, tuple[Bools, float]]]:
    """Pixels of the six shapes, and the masks of their boxes."""
    picture, truth = drawn_shapes()
    embedding = mobile_sam.encode(picture, "fast")
    found = masks_of(mobile_sam, embedding, [ObjectPrompt(box_around(mask)) for mask in truth.values()])
    return truth, dict(zip(truth, found, strict=True))


@pytest.mark.parametrize("name", ["circle", "ellipse", "rect", "star", "triangle"])
def test_shapes_are_cut_along_their_edges(
    shapes: tuple[dict[str, Bools], dict[str, tuple[Bools, float]]], name: str
) -> None:
    truth, found = shapes
    assert iou(found[name][0], truth[name]) >= 0.95


def test_known_limit_the_hole_of_a_ring_is_filled_with_full_confidence(
    shapes: tuple[dict[str, Bools], dict[str, tuple[Bools, float]]],
) -> None:
    """MobileSAM's mask of a box is the outline; predicted IoU is no guarantee (docs/architecture.md)."""
    truth, found = shapes
    mask, predicted = found["ring"]
    hole = ndimage.binary_fill_holes(truth["ring"]) & ~truth["ring"]
    assert np.count_nonzero(mask & hole) / np.count_nonzero(hole) > 0.9
    assert iou(mask | hole, truth["ring"] | hole) > 0.95
    assert predicted > 0.9


@given(st.integers(1, 400), st.integers(1, 400))
def test_pictures_fill_the_square_by_their_longer_side(width: int, height: int) -> None:
    scaled = scaled_size(np.zeros((height, width, 3), np.uint8), 64)
    assert max(scaled) == 64
    assert min(scaled) >= 1
    assert abs(scaled[0] * height - scaled[1] * width) <= max(width, height) or 1 in scaled


def test_pictures_are_normalised_before_they_are_padded_with_zeros() -> None:
    square = network_input(np.full((2, 4, 3), 255, np.uint8), (8, 4), 8)
    assert square.shape == (1, 3, 8, 8)
    assert np.allclose(square[0, :, :4].reshape(3, -1).T, (1 - np.array((0.485, 0.456, 0.406))) / (0.229, 0.224, 0.225))
    assert not square[0, :, 4:].any()


def test_prompts_are_scaled_from_pixel_centres_and_edges() -> None:
    prompt = ObjectPrompt((0, 0, 10, 4), ((0, 0, True), (9, 3, False)))
    coordinates, labels = prompt_arrays(prompt, (10, 5), (100, 50))
    assert labels.tolist() == [1, 0, 2, 3]
    assert coordinates.tolist() == [[4.5, 4.5], [94.5, 34.5], [-0.5, -0.5], [99.5, 39.5]]
    only_point = prompt_arrays(ObjectPrompt(None, ((3, 2, True),)), (10, 5), (10, 5))
    assert (only_point[0].tolist(), only_point[1].tolist()) == ([[3, 2], [0, 0]], [1, -1])


def opened(pair: Pair) -> OnnxPredictor:
    weights = pair.weights()
    return OnnxPredictor(pair.encoder, weights["encoder_sha256"], pair.decoder, weights["decoder_sha256"], threads=1)


def half_bright(width: int, height: int) -> NDArray[np.uint8]:
    """The right half is white, the left one black."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[:, width // 2 :] = 255
    return picture


BOX = ObjectPrompt((0, 0, 4, 4))
POINT = ObjectPrompt(None, ((1, 1, True),))


@pytest.mark.parametrize(("width", "height"), [(64, 64), (200, 100), (100, 200), (1, 1), (7, 3), (3000, 40)])
def test_pictures_of_any_size_and_shape_are_mapped_back_exactly(tmp_path: Path, width: int, height: int) -> None:
    predictor = opened(tiny_pair(tmp_path))
    embedding = predictor.encode(half_bright(width, height), "fast")
    assert embedding.size_px == (width, height)
    [(mask, score)] = masks_of(predictor, embedding, [BOX])
    assert score == pytest.approx(0.9)
    edge = np.flatnonzero(mask.any(axis=0))[0]
    assert abs(int(edge) - width // 2) <= max(1, max(width, height) / 64)
    assert mask[:, -1].all()


def test_blank_masks_keep_their_place(tmp_path: Path) -> None:
    predictor = opened(tiny_pair(tmp_path))
    embedding = predictor.encode(half_bright(64, 64), "fast")
    nothing = ObjectPrompt((0, 0, 4, 4), ((1, 1, False),))
    found = masks_of(predictor, embedding, [BOX, nothing, POINT])
    assert [bool(mask.any()) for mask, _ in found] == [True, False, True]


def first_logit(predictor: OnnxPredictor, prompt: ObjectPrompt) -> float:
    embedding = predictor.encode(np.full((64, 64, 3), 255, np.uint8), "fast")
    return float(predictor.decode(embedding, [prompt])[0].logits[0, 0])


def test_a_decoder_of_four_masks_gives_the_first_for_clear_prompts_and_the_best_for_a_single_point(
    tmp_path: Path,
) -> None:
    """EdgeSAM's signature: no earlier mask, no size, other names of outputs."""
    four = decoder(tmp_path / "d.onnx", extra=(), scores=[0.99, 0.2, 0.7, 0.3], outputs=("masks", "scores"))
    predictor = opened(Pair(encoder(tmp_path / "e.onnx"), four))
    clear, single = first_logit(predictor, BOX), first_logit(predictor, POINT)
    two_points = first_logit(predictor, ObjectPrompt(None, ((1, 1, True), (2, 2, True))))
    assert clear - single == pytest.approx(2)
    assert two_points == clear


def test_a_decoder_of_three_masks_gives_the_best(tmp_path: Path) -> None:
    three = decoder(tmp_path / "d.onnx", scores=[0.1, 0.8, 0.3])
    predictor = opened(Pair(encoder(tmp_path / "e.onnx"), three))
    one = opened(Pair(encoder(tmp_path / "e.onnx"), decoder(tmp_path / "d1.onnx")))
    assert first_logit(one, BOX) - first_logit(predictor, BOX) == pytest.approx(1)


def test_exports_of_sam_2_get_three_embeddings_and_pictures_that_fill_the_square(tmp_path: Path) -> None:
    names = ("image_embed", "high_res_feats_0", "high_res_feats_1")
    pair = Pair(
        encoder(tmp_path / "e.onnx", outputs=("high_res_feats_0", "high_res_feats_1", "image_embed")),
        decoder(tmp_path / "d.onnx", embeddings=names, extra=("mask_input", "has_mask_input"), labels=onnx_pairs.INT32),
    )
    predictor = opened(pair)
    embedding = predictor.encode(half_bright(200, 100), "fast")
    assert embedding.scaled_px == (SIDE_PX, SIDE_PX)
    assert embedding.nbytes == 3 * 16 * 16 * 4
    [(mask, _)] = masks_of(predictor, embedding, [BOX])
    assert iou(mask, half_bright(200, 100)[:, :, 0] > 0) > 0.95


def test_pairs_that_do_not_fit_are_refused_with_what_does_not_fit(tmp_path: Path) -> None:
    good_encoder, good_decoder = encoder(tmp_path / "e.onnx"), decoder(tmp_path / "d.onnx")
    wide = encoder(tmp_path / "wide.onnx", shape=["batch", 3, SIDE_PX, 2 * SIDE_PX])
    misfits = {
        "no input point_coords": Pair(good_encoder, good_encoder),
        "inputs": Pair(good_decoder, good_decoder),
        "no square": Pair(wide, good_decoder),
        "takes other": Pair(
            encoder(tmp_path / "e2.onnx", outputs=("a", "b")), decoder(tmp_path / "d2.onnx", embeddings=("other",))
        ),
        "none of low_res_masks": Pair(good_encoder, decoder(tmp_path / "d3.onnx", outputs=("masks", "scores"))),
        "point_labels is of": Pair(good_encoder, decoder(tmp_path / "d4.onnx", labels=onnx_pairs.TensorProto.DOUBLE)),
    }
    for what, pair in misfits.items():
        with pytest.raises(WorkerError, match=what) as refused:
            opened(pair)
        assert refused.value.code == "not_a_sam_model"
        assert str(tmp_path) not in refused.value.public_text


def test_files_are_opened_only_when_they_are_the_ones_that_were_meant(tmp_path: Path) -> None:
    pair = tiny_pair(tmp_path)
    weights = pair.weights()

    def code(path: Path, sha256: str) -> str:
        with pytest.raises(WorkerError) as refused:
            OnnxPredictor(path, sha256, pair.decoder, weights["decoder_sha256"], threads=1)
        assert "models fetch" in refused.value.public_text
        assert str(tmp_path) not in refused.value.public_text
        return refused.value.code

    assert code(tmp_path / "absent.onnx", weights["encoder_sha256"]) == "weights_missing"
    assert code(pair.encoder, "0" * 64) == "weights_wrong"
    cut_off = tmp_path / "cut.onnx"
    cut_off.write_bytes(pair.encoder.read_bytes()[:-40])
    assert code(cut_off, weights["encoder_sha256"]) == "weights_wrong"
    assert code(cut_off, Pair(cut_off, cut_off).weights()["encoder_sha256"]) == "weights_wrong"
