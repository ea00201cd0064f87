"""What `bench sam` says about what it measured: every ratio, what it is asked for, and what falls short."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.bench.sam import Report, Row
from sam2_mcp_worker.cli.bench import _table
from sam2_mcp_worker.cli.parser import run


def report(picture_s: float, floor_ratio: float) -> Report:
    rows = [Row("picture", 1.8, picture_s, 1.8), Row("tracked frame, balanced", 1.0, 2.0, None)]
    floors = [("encoder 512 px fp32", 0.6, floor_ratio, 1.5), ("encoder 1024 px fp32", 3.0, 9.0, None)]
    return Report("sam2.1_hiera_tiny", True, 2, 150.0, rows, floors)


def test_a_figure_just_at_its_target_is_no_shortfall_and_one_without_target_never_is() -> None:
    assert report(1.0, 1.5).short_of == []
    assert report(1.01, 1.51).short_of == ["picture", "encoder 512 px fp32"]


def test_the_table_has_every_figure_and_says_that_random_weights_give_no_masks() -> None:
    table = _table(report(0.9, 1.2))
    assert "RANDOM weights" in table
    assert "| picture | 1800 ms | 900 ms | 2.00 | 1.8 |" in table
    assert "| encoder 512 px fp32 | 600 ms | 1.20 | 1.5 |" in table
    assert "short of" not in table
    assert "short of what is asked for: picture" in _table(report(1.1, 1.2))


def test_without_the_extra_the_bench_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sam2_mcp_worker.segmentation.SAM2_PACKAGES", ("torch_of_another_machine",))
    assert run(["bench", "sam"]) == 3
    assert "sam2-mcp[worker,sam]" in capsys.readouterr().err
