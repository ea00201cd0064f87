"""A CA of its own for each test."""

from pathlib import Path

import pytest
from tests.fakes.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")
