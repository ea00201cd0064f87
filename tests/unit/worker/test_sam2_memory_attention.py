"""The memory attention as a graph gives what the network's own module gives."""

from __future__ import annotations

import pytest
import torch
from tests.fakes.sam2_tracking import telling_network
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.sam2_memory_attention import Sam2MemoryAttention

GRID = 8  # tokens a side, of 128 px
POINTER_TOKENS = 4  # tokens of 64 channels that a pointer of 256 makes


@pytest.fixture(scope="module")
def network() -> SAM2Model:
    return telling_network()


@pytest.fixture(scope="module")
def attention(network: SAM2Model) -> Sam2MemoryAttention:
    return Sam2MemoryAttention(network, side_px=GRID * 16, threads=1)


@pytest.mark.parametrize(("memories", "pointers"), [(1, 1), (2, 2), (4, 16), (7, 16)])
@torch.inference_mode()
def test_conditioned_features_are_those_of_the_network(
    network: SAM2Model, attention: Sam2MemoryAttention, memories: int, pointers: int
) -> None:
    random = torch.Generator().manual_seed(memories)
    shapes = [
        (GRID * GRID, 256),
        (memories, GRID * GRID, 64),
        (memories, 64),
        (pointers * POINTER_TOKENS, 64),
        (pointers * POINTER_TOKENS, 64),
    ]
    features, bank, ages, tokens, token_ages = (torch.randn(shape, generator=random) for shape in shapes)
    frame_places = network.image_encoder.neck.position_encoding(torch.zeros(1, 256, GRID, GRID))
    places = network.memory_encoder.position_encoding(torch.zeros(1, 64, GRID, GRID))[0].flatten(1).t()
    expected = network.memory_attention(
        curr=features[:, None],
        curr_pos=frame_places[0].flatten(1).t()[:, None],
        memory=torch.cat([bank.flatten(0, 1), tokens])[:, None],
        memory_pos=torch.cat([(places + ages[:, None]).flatten(0, 1), token_ages])[:, None],
        num_obj_ptr_tokens=len(tokens),
    )[:, 0]
    found = attention(*(tensor.numpy() for tensor in (features, bank, ages, tokens, token_ages)))
    assert (torch.from_numpy(found) - expected).abs().max() < 1e-4
    assert expected.std() > 0.1, "an output without contrast would prove nothing"
