from pathlib import Path

import pytest

from sam2_mcp_bridge.process import oom


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the kernel's files: a score of 0 and 512 MB."""
    (tmp_path / "score").write_text("0\n", encoding="ascii")
    (tmp_path / "limit").write_text(f"{512 * 2**20}\n", encoding="ascii")
    monkeypatch.setattr(oom, "SCORE", tmp_path / "score")
    monkeypatch.setattr(oom, "LIMITS", (tmp_path / "absent", tmp_path / "limit"))
    monkeypatch.setattr(oom, "_rank", oom._Rank())
    return tmp_path


def score(container: Path) -> int:
    return int((container / "score").read_text(encoding="ascii"))


def test_a_starting_bridge_goes_before_one_at_work_and_both_before_the_station(container: Path) -> None:
    station = score(container)
    oom.starting()
    starting = score(container)
    oom.at_work()
    assert starting > score(container) > station
    oom.at_work()
    assert starting > score(container) > station


def test_what_the_runtime_has_set_is_kept_and_the_highest_score_never_passed(container: Path) -> None:
    (container / "score").write_text("900", encoding="ascii")
    oom.starting()
    assert score(container) == oom.HIGHEST_SCORE


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_without_a_memory_limit_nothing_changes(container: Path, limit: str) -> None:
    (container / "limit").write_text(limit, encoding="ascii")
    oom.starting()
    assert score(container) == 0


def test_a_kernel_without_these_files_is_left_alone(container: Path) -> None:
    (container / "score").unlink()
    oom.starting()
    (container / "limit").unlink()
    oom.starting()
    assert not (container / "score").exists()
