"""The official SDK as the host, which checks every message it gets, through profile full to servers of every era."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ToolsListChanged, listen
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from tests.e2e.full_host import ERAS, FarServer, far_servers

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, FarServer]]:
    with far_servers() as running:
        yield running


async def elicited(*_: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Kim", "color": "red", "ok": True})


async def sampled(*_: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")


async def listed(*_: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///home")])


@asynccontextmanager
async def sdk_host(server: FarServer, mode: Any) -> AsyncIterator[Client]:
    command = ["-u", "-m", "sam2_mcp_bridge", "--profile", "full", "--url", server.url]
    program = StdioServerParameters(command=sys.executable, args=command)
    callbacks = {"elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": listed}
    async with Client(program, mode=mode, read_timeout_seconds=PATIENCE_S, **callbacks) as client:
        yield client


def text_of(result: Any) -> str:
    assert not result.is_error
    return str(result.content[0].text)


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_the_official_sdk_is_served_in_every_mix(servers: dict[str, FarServer], mode: str, server: str) -> None:
    async with sdk_host(servers[server], mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert len((await client.list_tools()).tools) > 20
        assert (await client.list_resources()).resources
        seen: list[float] = []

        async def progressed(progress: float, *_: Any) -> None:
            seen.append(progress)

        with anyio.fail_after(PATIENCE_S):
            assert text_of(await client.call_tool("test_tool_with_progress", progress_callback=progressed))
            for name, words in (
                ("test_input_required_result_multi_round", "Kim likes red"),
                ("test_input_required_result_multiple_inputs", "3 answers"),
                ("test_sampling", "LLM response: Paris"),
            ):
                arguments = {"prompt": "?"} if name == "test_sampling" else {}
                assert text_of(await client.call_tool(name, arguments)) == words
        assert seen == [0, 50, 100]


@pytest.mark.parametrize("server", ERAS)
async def test_subscriptions_of_the_official_sdk_hear_of_changes(servers: dict[str, FarServer], server: str) -> None:
    async with sdk_host(servers[server], "auto") as client:
        async with listen(client.session, tools_list_changed=True) as subscription, anyio.create_task_group() as calls:

            async def change_again_and_again() -> None:
                # The stream of a legacy server opens beside the acknowledgement: its first change may come before.
                while True:
                    await client.call_tool("tools_changed")

            calls.start_soon(change_again_and_again)
            with anyio.fail_after(PATIENCE_S):
                async for event in subscription:
                    assert isinstance(event, ToolsListChanged)
                    break
            calls.cancel_scope.cancel()
        assert text_of(await client.call_tool("release", {"name": "x"})) == "released"


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_that_the_official_sdk_gives_up_is_cancelled(
    servers: dict[str, FarServer], mode: str, server: str
) -> None:
    name = f"sdk {mode} {server}"
    async with sdk_host(servers[server], mode) as client:
        async with anyio.create_task_group() as calls:

            async def hold() -> None:
                await client.call_tool("hold", {"name": name})

            calls.start_soon(hold)
            await client.call_tool("until", {"moment": f"started {name}"})
            calls.cancel_scope.cancel()
        with anyio.fail_after(PATIENCE_S):
            assert text_of(await client.call_tool("until", {"moment": f"cancelled {name}"}))
