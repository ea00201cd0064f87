"""The smallest upstream on the real MCP SDK: one tool that says back its tag after a delay. Run it as a program."""

import argparse

import anyio
import uvicorn
from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool()
async def echo(tag: str, delay_ms: int = 0) -> str:
    """Returns `tag` after `delay_ms`."""
    await anyio.sleep(delay_ms / 1000)
    return tag


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port: int = parser.parse_args().port
    # Stateless with SSE: the mode in which the SDK cancels a call whose caller has gone.
    app = server.streamable_http_app(stateless_http=True, json_response=False)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
