"""Entry point: `sam2-mcp` and `python -m sam2_mcp_bridge`.

Exit codes: 0 the host or a signal ended the bridge; 2 wrong flag or setting; 3 the bridge could not start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sam2_mcp_bridge import lean_httpx, memory, oom, stdio
from sam2_mcp_bridge.errors import EXIT_STARTUP, SetupError

if TYPE_CHECKING:
    from sam2_mcp_bridge.config import Config


def main(argv: Sequence[str] | None = None) -> int:
    lean_httpx.place_stand_ins()
    from sam2_mcp_bridge import config  # after that: dataclasses would load inspect, 1.2 MB

    try:
        settings = config.load(sys.argv[1:] if argv is None else argv)
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
        raise SetupError(f"httpx cannot be imported ({error}); pip install httpx", EXIT_STARTUP) from error
    memory.settle()
    return app.run(settings, wire)


if __name__ == "__main__":
    raise SystemExit(main())
