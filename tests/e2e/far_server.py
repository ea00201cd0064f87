"""A third-party server with sessions on the SDK, whose tools do what tests of the bridge must see. Run as a program.

Beside the fixtures of the official suite: calls that a test holds and releases, and a record of the cancelled ones.
"""

import argparse
import warnings
from collections import defaultdict
from functools import partial
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import ASGIApp
from tests.conformance.everything_server import MemoryEvents, OneEra, build_server

AnyContext = Context[Any, Any]


def add_held_tools(server: MCPServer[Any]) -> None:
    """Calls that wait for other calls, so that no test needs to wait for a time."""
    moments: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    @server.tool(structured_output=False)
    async def hold(name: str, ctx: AnyContext) -> str:
        """Waits until somebody releases this name."""
        moments[f"started {name}"].set()
        try:
            await moments[f"released {name}"].wait()
        except anyio.get_cancelled_exc_class():
            moments[f"cancelled {name}"].set()
            raise
        return name

    @server.tool(structured_output=False)
    async def release(name: str) -> str:
        """Lets the call of this name go on."""
        moments[f"released {name}"].set()
        return "released"

    @server.tool(structured_output=False)
    async def until(moment: str) -> str:
        """Waits until a call has started or was cancelled."""
        await moments[moment].wait()
        return moment


def add_telling_tools(server: MCPServer[Any]) -> None:
    """Calls that make the server speak outside of their own stream."""

    @server.tool(structured_output=False)
    async def tools_changed(ctx: AnyContext) -> str:
        """Says so in the way of either era."""
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "told"

    @server.tool(structured_output=False)
    async def resource_changed(uri: str, ctx: AnyContext) -> str:
        """Says so in the way of either era."""
        await ctx.notify_resource_updated(uri)
        await ctx.session.send_resource_updated(uri)
        return "told"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True, help="the socket to serve, which listens already")
    parser.add_argument("--era", choices=("dual", "legacy", "modern"), default="dual")
    parser.add_argument("--stateless", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = build_server()
    add_held_tools(server)
    add_telling_tools(server)
    lowlevel = server._lowlevel_server
    changes = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    lowlevel.create_initialization_options = partial(lowlevel.create_initialization_options, changes)  # type: ignore
    events = None if options.stateless else MemoryEvents()
    app: ASGIApp = server.streamable_http_app(event_store=events, stateless_http=options.stateless)
    if options.era != "dual":
        app = OneEra(app, options.era)
    uvicorn.run(app, fd=options.fd, log_level="error")


if __name__ == "__main__":
    main()
