"""`make record-claude`: show the real API the recorded inputs and keep its answers for replay (docs/claude.md).

Needs ANTHROPIC_API_KEY, takes ANTHROPIC_BASE_URL. Costs an estimated 0.20 US dollars at list prices, never more than
the cap of `run.py`, which the worker's own ledger holds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.record.inputs import inputs
from tests.record.run import RECORDING_CAP_USD, record_answers, record_edges
from tests.record.stored import FOLDER


async def _record(upstream: str, key: str, only: str, folder: Path) -> int:
    chosen = [item for item in inputs() if only in item.name]
    with tempfile.TemporaryDirectory() as scratch:
        written, failures = await record_answers(chosen, upstream, key, folder, Path(scratch))
    if not only:
        written += await asyncio.to_thread(record_edges, upstream, key, folder)
    for path in written:
        print(f"stored {path.name}")
    for failure in failures:
        print(f"not stored: {failure}", file=sys.stderr)
    return 1 if failures or not written else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__)
    parser.add_argument("--only", default="", help="record only inputs whose name holds this")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder for the answers")
    wish = parser.parse_args(arguments)
    key = os.environ.pop("ANTHROPIC_API_KEY", "").strip()
    if not key:
        print("ANTHROPIC_API_KEY is not set: nothing was recorded, nothing was sent.", file=sys.stderr)
        return 2
    upstream = os.environ.pop("ANTHROPIC_BASE_URL", "") or "https://api.anthropic.com"
    print(f"recording from {upstream}, at most {RECORDING_CAP_USD:.2f} US dollars")
    return asyncio.run(_record(upstream, key, wish.only, wish.into))


if __name__ == "__main__":
    raise SystemExit(main())
