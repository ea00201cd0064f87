"""The worker as a server under test: its own factory, with the suite's fixtures on the same server object.

Run as a program. What the suite calls are fixtures; what it tests is everything around them: the guard, stateless
streams, negotiation, headers, the boundary of tools/server.py.
"""

import argparse
import warnings
from pathlib import Path

import uvicorn
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.conformance.fixtures import add_fixtures

from sam2_mcp_worker.app import create_app
from sam2_mcp_worker.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    app = create_app(Settings(port=options.port, data_dir=options.data_dir, log_level="ERROR"))
    add_fixtures(app.state.tool_server)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="error")


if __name__ == "__main__":
    main()
