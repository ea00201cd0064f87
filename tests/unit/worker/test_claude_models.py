"""What the models endpoint says of a model: whether it can be used, and what its limits are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import ModelInfo
from tests.fakes import claude_wire
from tests.fakes.claude_rules import Model
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import claude_server

from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.engines.claude_models import ModelState, judge
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import Usage


def judged(model: Model | None = None, **changes: Any) -> tuple[VisionError | None, ModelState]:
    state = ModelState("claude-haiku-5-5", 10_400, (0.10, 0.50))
    told = claude_wire.model_info(state.model_id, model or Model("Claude")) | changes
    return judge(ModelInfo.model_validate(told), state), state


def test_a_model_that_has_all_it_takes_is_verified() -> None:
    error, state = judged()
    assert error is None
    assert (state.state, state.max_tokens) == ("verified", 10_400)


def test_more_output_than_a_model_has_is_not_asked_of_it() -> None:
    error, state = judged(Model("Claude", max_tokens=8192))
    assert error is None
    assert state.max_tokens == 8192
    assert state.worst_usd(1000) == pytest.approx((1000 * 0.10 + 8192 * 0.50) / 1e6)


@pytest.mark.parametrize(
    ("model", "changes", "reason"),
    [
        (Model("Claude", sees=False), {}, "it takes no pictures"),
        (None, {"lifecycle": "retired"}, "it is retired"),
    ],
)
def test_a_model_that_cannot_do_the_work_is_trouble(model: Model | None, changes: dict[str, Any], reason: str) -> None:
    error, state = judged(model, **changes)
    assert error is not None
    assert error.kind == "model"
    assert reason in error.public_text
    assert state.told(error)["state"] == error.what


def test_a_model_that_will_be_retired_is_used_and_the_day_told() -> None:
    error, state = judged(lifecycle="deprecated", retires_at=datetime(2027, 1, 22, tzinfo=UTC).isoformat())
    assert error is None
    assert state.state == "verified, deprecated, retires 2027-01-22"


def test_what_an_odd_gateway_leaves_out_is_no_reason_against_a_model() -> None:
    state = ModelState("claude-haiku-5-5", 10_400, (0.10, 0.50))
    fields: Any = {"id": "claude-haiku-5-5"}
    assert judge(ModelInfo.model_construct(**fields), state) is None
    assert state.max_tokens == 10_400


def test_tokens_are_priced_by_the_million() -> None:
    state = ModelState("claude-sonnet-5-5", 15_600, (2.0, 10.0))
    assert state.priced(Usage(1, 2_000_000, 100_000)).usd == 5.0


async def test_a_blind_model_is_named_when_the_worker_starts(tmp_path: Path) -> None:
    models = {"claude-haiku-5-5": Model("Blind", sees=False), "claude-sonnet-5-5": Model("Claude")}
    with claude_server([], Script(models=models)) as fake:
        vision = build_claude(Settings(data_dir=tmp_path, **fake.settings()))
        errors = await vision.check_models()
        assert repr(vision) == "<ClaudeVision [0 in flight, 0 waiting]>"
        await vision.close()
    assert [error.kind for error in errors] == ["model"]
    assert vision.where == "127.0.0.1"
    assert vision.trouble is None
    assert vision.trouble_with("fast") is not None
    assert vision.trouble_with("accurate") is None
