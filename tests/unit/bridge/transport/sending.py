"""Sends one message through a transport, and says what came of it."""

import time
from typing import Any

import httpx
import pytest
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, SetupError
from sam2_mcp_bridge.transport.transport import Exchange, Transport

MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def read(transport: Transport, exchange: Exchange) -> bytes:
    with transport.send(exchange, "POST", {}, MESSAGE) as response:
        return response.read()


def send(
    transport: Transport, content: Any = MESSAGE, *, method: str = "POST", path: str | None = None
) -> httpx.Response:
    with transport.send(Exchange(time.monotonic() + 20), method, {}, content, path) as response:
        response.read()
        return response


def status(config: Config) -> int:
    return send(Transport(config)).status_code


def failure(config: Config) -> Failure:
    with pytest.raises(Failure) as caught:
        send(Transport(config))
    assert str(caught.value).startswith(f"[{caught.value.code}] ")
    return caught.value


def setup_error(**settings: Any) -> SetupError:
    with pytest.raises(SetupError) as caught:
        Transport(Config(**({"url": "https://worker/mcp"} | settings)))
    return caught.value


def localhost(fake: FakeUpstream) -> str:
    return fake.url.replace("127.0.0.1", "localhost")
