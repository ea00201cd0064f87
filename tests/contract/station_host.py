"""What the contract tests of the bridge share."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.unit.bridge.mcp_host import Host

Start = Callable[..., AbstractContextManager[Host]]


def payload(result: dict[str, Any]) -> Any:
    return json.loads(result["content"][0]["text"])
