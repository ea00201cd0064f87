"""SAM 2.1 on pictures: the masks of the reference package on the same weights; order, count and choice of masks."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sam2.build_sam import build_sam2
from sam2.sam2_image_predictor import SAM2ImagePredictor
from tests.fakes.sam2_weights import RandomWeights, random_weights

from sam2_mcp_worker.engines import sam2
from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam2 import Sam2Predictor, load_predictor
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind, Sam2Encoder, squeeze
from sam2_mcp_worker.engines.sam2_network import load_network
from sam2_mcp_worker.errors import WorkerError

SIDE_PX = 256
PARITY = 1e-4
SMALL: dict[Quality, EncoderKind] = {"accurate": EncoderKind(SIDE_PX, "fp32"), "fast": EncoderKind(128, "int8")}
PROMPTS = [
    ObjectPrompt(box_xyxy_px=(20, 10, 120, 90)),
    ObjectPrompt(points=((60, 50, True),)),
    ObjectPrompt(points=((60, 50, True), (5, 5, False), (90, 70, True))),
    ObjectPrompt(box_xyxy_px=(20, 10, 120, 90), points=((60, 50, True), (100, 80, False))),
]
Rgb = NDArray[np.uint8]


@pytest.fixture(scope="module")
def weights() -> RandomWeights:
    return random_weights()


@pytest.fixture(scope="module")
def predictor(weights: RandomWeights, tmp_path_factory: pytest.TempPathFactory) -> Sam2Predictor:
    network = load_network(weights.model, weights.path, weights.sha256)
    records = tmp_path_factory.mktemp("checks")
    encoder = Sam2Encoder(network, sha256=weights.sha256, threads=2, records_dir=records)
    return Sam2Predictor(network, encoder, identity="test", kinds=SMALL)


@pytest.fixture(scope="module")
def reference(predictor: Sam2Predictor) -> SAM2ImagePredictor:
    model = build_sam2(
        "configs/sam2.1/sam2.1_hiera_t.yaml", device="cpu", hydra_overrides_extra=[f"++model.image_size={SIDE_PX}"]
    )
    model.load_state_dict(predictor.network.state_dict())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)
        image_predictor = SAM2ImagePredictor(model)
    image_predictor._bb_feat_sizes = [(SIDE_PX // stride, SIDE_PX // stride) for stride in (4, 8, 16)]
    return image_predictor


def noise(height: int, width: int) -> Rgb:
    """Blots of several sizes, so that the maps are not all alike."""
    coarse = torch.rand(1, 3, 6, 9, generator=torch.Generator().manual_seed(height))
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic", align_corners=False)
    grain = torch.randint(0, 40, smooth.shape, generator=torch.Generator().manual_seed(width))
    return (smooth * 215 + grain).clamp(0, 255).byte()[0].permute(1, 2, 0).contiguous().numpy()


def show(reference: SAM2ImagePredictor, rgb: Rgb) -> None:
    """Give the reference the same squeezed picture, and the size that coordinates are in."""
    reference.set_image(squeeze(rgb, SIDE_PX))
    reference._orig_hw = [rgb.shape[:2]]


def reference_logits(reference: SAM2ImagePredictor, prompt: ObjectPrompt) -> tuple[NDArray[np.float32], float]:
    """By the rule of SAM2Base: three masks for a single point, of which the best rated is taken, else one."""
    points = np.array([point[:2] for point in prompt.points], np.float32)
    labels = np.array([point[2] for point in prompt.points], np.int32)
    single = prompt.box_xyxy_px is None and len(points) == 1
    _, scores, logits = reference.predict(
        point_coords=points if len(points) else None,
        point_labels=labels if len(points) else None,
        box=np.array(prompt.box_xyxy_px, np.float32) if prompt.box_xyxy_px else None,
        multimask_output=single,
    )
    best = int(scores.argmax())
    return logits[best], float(scores[best])


# Square; wide and tall, after the same resize.
@pytest.mark.parametrize("size", [(256, 256), (100, 160), (300, 140)])
def test_embeddings_and_masks_are_those_of_the_reference(
    predictor: Sam2Predictor, reference: SAM2ImagePredictor, size: tuple[int, int]
) -> None:
    rgb = noise(*size)
    show(reference, rgb)
    embedding = predictor.encode(rgb, "accurate")
    theirs = [*reference._features["high_res_feats"], reference._features["image_embed"]]
    for ours, wanted in zip(embedding.features, theirs, strict=True):
        assert float((ours - wanted).abs().max()) <= PARITY
    for prompt, found in zip(PROMPTS, predictor.decode(embedding, PROMPTS), strict=True):
        logits, score = reference_logits(reference, prompt)
        assert found.logits.shape == (SIDE_PX // 4, SIDE_PX // 4)
        assert float(np.abs(np.clip(found.logits, -32, 32) - logits).max()) <= PARITY
        assert found.predicted_iou == pytest.approx(score, abs=PARITY)
        assert found.logits.std() > 0


def test_the_runtime_check_of_the_encoder_is_far_below_its_limit(predictor: Sam2Predictor) -> None:
    predictor.encode(noise(64, 64), "accurate")
    assert predictor.encoder.checks[SMALL["accurate"]].max_error < PARITY


def test_a_single_point_gives_the_best_rated_of_three_masks(predictor: Sam2Predictor) -> None:
    embedding = predictor.encode(noise(100, 160), "accurate")
    rated: list[list[float]] = []
    hook = predictor.network.sam_mask_decoder.register_forward_hook(
        lambda _, __, outputs: rated.append(outputs[1][0].tolist())
    )
    found = predictor.decode(embedding, PROMPTS)
    hook.remove()
    assert [len(scores) for scores in rated] == [1, 3, 1, 1]
    assert [mask.predicted_iou for mask in found] == [max(scores) for scores in rated]


def test_result_i_belongs_to_prompt_i_whatever_is_asked_with_it(predictor: Sam2Predictor) -> None:
    embedding = predictor.encode(noise(100, 160), "accurate")
    together = predictor.decode(embedding, PROMPTS[::-1])
    for prompt, found in zip(PROMPTS[::-1], together, strict=True):
        [alone] = predictor.decode(embedding, [prompt])
        assert np.array_equal(found.logits, alone.logits)
        assert found.predicted_iou == alone.predicted_iou
    assert predictor.decode(embedding, []) == []


def test_a_blank_mask_keeps_its_place(predictor: Sam2Predictor) -> None:
    embedding = predictor.encode(noise(100, 160), "accurate")
    peaks = [float(found.logits.max()) for found in predictor.decode(embedding, PROMPTS)]
    threshold = float(np.mean([min(peaks), max(peaks)]))

    def lower(_: Any, __: Any, outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (outputs[0] - threshold, *outputs[1:])

    hook = predictor.network.sam_mask_decoder.register_forward_hook(lower)
    found = predictor.decode(embedding, PROMPTS)
    hook.remove()
    blank = [not (mask.logits > 0).any() for mask in found]
    assert blank == [peak <= threshold for peak in peaks]
    assert True in blank and False in blank


def test_an_object_without_box_and_points_is_refused(predictor: Sam2Predictor) -> None:
    with pytest.raises(WorkerError, match="prompt_missing"):
        predictor.decode(predictor.encode(noise(40, 40), "accurate"), [ObjectPrompt()])


def test_an_embedding_outlives_pictures_of_other_sizes(predictor: Sam2Predictor) -> None:
    large, rgb = predictor.encode(noise(100, 160), "accurate"), noise(90, 50)
    before = predictor.decode(large, PROMPTS)
    small = predictor.encode(rgb, "fast")
    assert predictor.decode(small, PROMPTS)[0].logits.shape == (32, 32)
    after = predictor.decode(large, PROMPTS)
    assert all(np.array_equal(a.logits, b.logits) for a, b in zip(before, after, strict=True))
    assert small.size_px == (50, 90)
    assert large.nbytes == 4 * (32 * 64**2 + 64 * 32**2 + 256 * 16**2)


def test_a_configuration_becomes_a_predictor_that_works_at_once(
    weights: RandomWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sam2, "PICTURE_KINDS", {"fast": EncoderKind(128, "int8")})
    monkeypatch.setattr(sam2, "TRACKED_KINDS", (EncoderKind(128, "fp32"),))
    config = {
        "model": weights.model,
        "weights": str(weights.path),
        "sha256": weights.sha256,
        "exports_dir": str(tmp_path / "checks"),
    }
    before = torch.get_num_threads()
    try:
        loaded = load_predictor(config, threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert loaded.identity == f"sam2 {weights.model} {weights.sha256[:8]}"
    assert len(list((tmp_path / "checks").iterdir())) == 2


SEALED = """
import os, sys
from pathlib import Path
seen = []
sys.addaudithook(lambda event, args: seen.append((event, str(args)[:200])) if event.startswith("socket.") else None)
import numpy as np
from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.engines.sam2 import Sam2Predictor
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind, Sam2Encoder
from sam2_mcp_worker.engines.sam2_network import load_network, use_threads
network = load_network(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
use_threads(2)
encoder = Sam2Encoder(network, sha256=sys.argv[3], threads=2, records_dir=Path(sys.argv[4]))
predictor = Sam2Predictor(network, encoder, identity="sealed", kinds={"fast": EncoderKind(128, "int8")})
found = predictor.decode(predictor.encode(np.zeros((50, 70, 3), np.uint8), "fast"), [ObjectPrompt((1, 2, 30, 40))])
assert found[0].logits.shape == (32, 32) and not encoder.on_torch
print(seen, file=sys.stderr)
sys.exit(3 if seen else 0)
"""


def test_a_picture_is_cut_without_a_socket_and_without_a_byte_on_stdout(weights: RandomWeights, tmp_path: Path) -> None:
    kept = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    done = subprocess.run(
        [sys.executable, "-c", SEALED, weights.model, str(weights.path), weights.sha256, str(tmp_path / "checks")],
        env={**environment, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8")
    assert done.stdout == b""
