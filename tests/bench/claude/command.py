"""What benches have in common on the command line: their options, and how they end."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def options(name: str, bench: str = "claude") -> argparse.ArgumentParser:
    """What every part of a bench takes; `finish` acts on it."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench.{bench}.{name}")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 when a bound is missed")
    return parser


def finish(arguments: argparse.Namespace, data: Any, shown: str, short: Sequence[str]) -> int:
    """Print the figures and what misses its bound; the exit code."""
    print(json.dumps(data) if arguments.json else shown)
    print("\n".join(short), file=sys.stderr)
    return 1 if arguments.check and short else 0


def rows_of(figures: Mapping[str, Any]) -> str:
    """A table of two columns."""
    return "\n".join(f"| {name} | {value} |" for name, value in figures.items())
