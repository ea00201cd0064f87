"""What a call cost, as it stands in `_meta`."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.scripted_eyes import ScriptedEyes

from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.tools.usage import USAGE_KEY, usage_meta


def test_a_call_tells_its_sums_and_which_tile_cost_what(tmp_path: Path) -> None:
    services = Services(Settings(data_dir=tmp_path))
    services.vision = ScriptedEyes(())
    meta = usage_meta(services, {3: Usage(1, 10, 5, 0.25), 1: Usage(2, 20, 7, 0.5)}, "page")
    assert meta is not None
    usage = meta[USAGE_KEY]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"], usage["usd"]) == (3, 30, 12, 0.75)
    assert list(usage["per_page"]) == ["1", "3"] and usage["per_page"]["3"]["usd"] == 0.25
    assert (usage["usd_today"], usage["cap_usd"]) == (0, 10.0)


def test_a_call_that_cost_nothing_says_zero_and_one_that_cannot_cost_says_nothing(tmp_path: Path) -> None:
    services = Services(Settings(data_dir=tmp_path))
    assert usage_meta(services, {}, "tile") is None
    services.vision = ScriptedEyes(())
    meta = usage_meta(services, {}, "tile")
    assert meta is not None and meta[USAGE_KEY]["requests"] == meta[USAGE_KEY]["usd"] == 0
