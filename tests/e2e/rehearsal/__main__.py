"""The whole rehearsal by hand, with figures: `python -m tests.e2e.rehearsal` (about six minutes)."""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.e2e.rehearsal.real_worker import real_stage
from tests.e2e.rehearsal.stage import ECHO, Size, rehearse

# The bridge's default deadline; as its caller sees it, no call may take longer than LIMIT_S.
LIMIT_S = 29.0
RIGHT_SHARE = 0.8
FULL = Size(
    calls=1000,
    deadline_s=27.0,
    usual_ms=300,
    slow=6,
    hopeless=2,
    kills=6,
    restarts=3,
    freezes=6,
    longest_freeze_s=33.0,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.rehearsal")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--worker", choices=["echo", "real"], default="real")
    parser.add_argument("--log-dir", type=Path, default=Path(tempfile.gettempdir()) / "sam2-mcp-rehearsal")
    arguments = parser.parse_args()
    arguments.log_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        stage = ECHO
        if arguments.worker == "real":
            folder = Path(scratch) / "files"
            folder.mkdir()
            stage = real_stage(folder, Path(scratch) / "data", arguments.seed)
        report = asyncio.run(rehearse(FULL, arguments.seed, arguments.log_dir, stage))
    shortcomings = report.shortcomings(LIMIT_S, RIGHT_SHARE)
    print(f"seed {arguments.seed}, logs in {arguments.log_dir}\n{report.summary()}")
    print("\n".join(shortcomings) or "passed")
    return 1 if shortcomings else 0


if __name__ == "__main__":
    sys.exit(main())
