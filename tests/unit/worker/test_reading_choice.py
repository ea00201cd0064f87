"""Which engine reads a request, and that a request goes on with the engine that it began with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.scripted_eyes import ScriptedEyes

from sam2_mcp_worker.engines.ports import VisionModel, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.pipelines.reading_choice import LOCAL, Mode, choose_model, choose_reading, vision_tiles
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

TEXT, BOTH = Wanted(text=True), Wanted(text=True, labels=("coin",))
CAP = VisionError("cap", "the day's money is spent", next_step="wait for tomorrow")


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(Settings(data_dir=tmp_path))


def with_eyes(services: Services, trouble: VisionError | None = None) -> Services:
    services.vision, services.vision_missing = ScriptedEyes((), trouble=trouble), None
    return services


@pytest.mark.parametrize(
    ("mode", "tiles", "model"),
    [
        ("auto", 1, "accurate"),
        ("auto", 2, "accurate"),
        ("auto", 3, "fast"),
        ("auto", 500, "fast"),
        ("fast", 1, "fast"),
        ("accurate", 500, "accurate"),
    ],
)
def test_many_tiles_take_the_fast_model_unless_the_call_says_otherwise(mode: Mode, tiles: int, model: str) -> None:
    assert choose_model(Settings(), mode, tiles) == model


def test_the_number_of_tiles_that_makes_it_fast_is_a_setting() -> None:
    assert choose_model(Settings(vision_fast_above_tiles=0), "auto", 1) == "fast"


def test_the_provider_reads_and_finds_where_there_is_one(services: Services) -> None:
    choice = choose_reading(with_eyes(services), "auto", 9, BOTH)
    assert "scripted/fast" in choice.reader.identity and choice.reader.costs_money
    assert choice.engine == "claude-haiku-5-5 (fast)"
    assert (choice.regions_missing, choice.notes, choice.labels) == (None, (), ("coin",))
    assert choice.reader.tile_limit == vision_tiles(services.settings)


def test_without_a_provider_the_local_engine_reads_and_says_why_it_finds_no_regions(services: Services) -> None:
    choice = choose_reading(services, "auto", 9, BOTH)
    assert (choice.reader, choice.engine, choice.notes, choice.labels) == (services.reader, LOCAL, (), ())
    assert choice.regions_missing is not None and "ANTHROPIC_API_KEY" in choice.regions_missing.next_step
    assert choose_reading(services, "auto", 9, TEXT).regions_missing is None


def test_a_mode_without_a_provider_is_said_to_do_nothing(services: Services) -> None:
    (note,) = choose_reading(services, "accurate", 1, TEXT).notes
    assert "mode 'accurate'" in note


def test_in_trouble_the_local_engine_reads_and_the_result_says_why(services: Services) -> None:
    choice = choose_reading(with_eyes(services, CAP), "accurate", 1, BOTH)
    assert (choice.engine, choice.labels) == (LOCAL, ())
    assert choice.regions_missing is CAP
    (note,) = choice.notes
    assert "the day's money is spent" in note and "wait for tomorrow" in note


def test_a_request_goes_on_with_the_engine_that_its_cursor_is_of(services: Services) -> None:
    local = services.reader
    healthy = choose_reading(with_eyes(services), "auto", 1, TEXT, cursor_fits=lambda reader: reader is local)
    assert healthy.reader is local  # it began while there was trouble
    begun = choose_reading(with_eyes(services), "auto", 1, BOTH, cursor_fits=lambda reader: reader is local)
    assert begun.regions_missing is not None and "without the cursor" in begun.regions_missing.next_step
    assert "began with the local engine" in begun.notes[0]
    troubled = choose_reading(with_eyes(services, CAP), "auto", 1, TEXT, cursor_fits=lambda r: r is not local)
    assert troubled.reader is not local  # it began before the trouble
    assert choose_reading(services, "auto", 1, TEXT, cursor_fits=lambda _: False).reader is local


class OneEyed(ScriptedEyes):
    """Whose fast model nobody knows."""

    def trouble_with(self, model: VisionModel) -> VisionError | None:
        return VisionError("model", "never heard of it") if model == "fast" else None


def test_a_model_that_is_unknown_leaves_the_other_one_in_use(services: Services) -> None:
    services.vision, services.vision_missing = OneEyed(()), None
    fast = choose_reading(services, "auto", 9, BOTH)
    assert fast.engine == LOCAL and "never heard of it" in fast.notes[0]
    assert fast.regions_missing is not None and fast.regions_missing.code == "vision_model"
    assert choose_reading(services, "auto", 1, BOTH).reader.costs_money
