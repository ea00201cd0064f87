"""Everything that the network's child needs is imported while it sets up: its first picture and its first frames import
nothing more, so no call waits for a module or hangs in an import.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.sam2_weights import random_weights

PROGRAM = """
import sys
from pathlib import Path
from sam2_mcp_worker.engines import sam_child, segmenter
model, weights, sha256, folder = sys.argv[1:]
made = str(Path(weights).parent / "exports")
config = segmenter.child_config(
    "sam2", {"model": model, "weights": weights, "sha256": sha256, "exports_dir": made},
    threads=2, embedding_cache_bytes=10**8, track_memory_bytes=10**9)
sam_child.setup(config)
known = set(sys.modules)
(Path(folder) / "p.rgb").write_bytes(bytes(120 * 90 * 3))
from sam2_mcp_worker.media.pixels import PixelFile
pixels = PixelFile(Path(folder) / "p.rgb", 120, 90).to_params()
prompts = [{"box": [5, 5, 60, 60], "points": []}]
step = {"pixels": pixels, "frame": pixels, "content_key": "k", "session": "s", "quality": "fast", "prompts": prompts,
        "mask_dir": folder}
for task in ("encode", "masks", "track_start", "track_step"):
    sam_child.TASKS[task](step)
print(*sorted(set(sys.modules) - known))
"""


@pytest.mark.timeout(240)
def test_the_first_tasks_import_nothing(tmp_path: Path) -> None:
    weights = random_weights(seed=1)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, weights.model, str(weights.path), weights.sha256, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=220,
        env=os.environ | {"YOLO_CONFIG_DIR": str(tmp_path / "yolo")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == []
