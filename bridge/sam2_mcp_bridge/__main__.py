"""Entry point: `sam2-mcp` and `python -m sam2_mcp_bridge`.

Exit codes: 0 the host or a signal ended the bridge; 2 wrong flag or setting; 3 the bridge could not start. With
--check those of check.py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sam2_mcp_bridge.errors import EXIT_STARTUP, SetupError
from sam2_mcp_bridge.process import memory, oom, stdio
from sam2_mcp_bridge.transport import lean_httpx

if TYPE_CHECKING:
    from sam2_mcp_bridge.config import Config


def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    lean_httpx.place_stand_ins()
    from sam2_mcp_bridge import config  # after that: dataclasses would load inspect, 1.2 MB

    try:
        if any(flag.partition("=")[0] == "--check" for flag in given):
            return _check(given)
        settings = config.load(given)
        return _serve(settings, stdio.claim())
    except SetupError as error:
        stdio.complain(str(error))
        return error.exit_code


def _serve(settings: Config, wire: stdio.Wire) -> int:
    oom.starting()
    try:
        # Here and not above: whatever an import prints must find stdout claimed.
        from sam2_mcp_bridge import app
    except ImportError as error:
        raise _missing(error) from error
    memory.settle()
    return app.run(settings, wire)


def _check(argv: Sequence[str]) -> int:
    try:
        from sam2_mcp_bridge.doctor import check
    except ImportError as error:
        raise _missing(error) from error
    return check.main(argv)


def _missing(error: ImportError) -> SetupError:
    return SetupError(f"httpx cannot be imported ({error}); pip install httpx", EXIT_STARTUP)


if __name__ == "__main__":
    raise SystemExit(main())
