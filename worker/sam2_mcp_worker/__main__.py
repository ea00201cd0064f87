"""`sam2-mcp-worker`: serve, call, doctor, demo, models, bench, eval, rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence

EXIT_STARTUP = 3  # as in uvicorn: a supervisor should not restart what cannot start

INSTALL_HINT = "sam2-mcp-worker needs the worker's packages: pip install 'sam2-mcp[worker]'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 ok, 1 failed, 2 usage, 3 cannot start."""
    try:
        from sam2_mcp_worker.cli.parser import run
    except ImportError as error:
        sys.stderr.write(f"{INSTALL_HINT} ({error})\n")
        return EXIT_STARTUP
    return run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    raise SystemExit(main())
