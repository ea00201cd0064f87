"""A server of another SDK behind the bridge: npm's server-everything, in TypeScript, of 2025-11-25 and with sessions.

A raw host of either era calls its tools through the real bridge in profile full, answers what the server asks of its
user, its model and its folders, and looks for what only a call that went all the way can bring. The host is a program
of its own (`python -m tests.conformance.foreign URL VERSION`): what the bridge puts in the place of httpx's modules
must not get into the process that runs the suite.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance.checks import Row
from tests.conformance.child import run_to_end
from tests.conformance.groups import LEGACY, MODERN
from tests.conformance.toolchain import EVERYTHING, NODE
from tests.e2e.rehearsal.processes import Program, free_port, running

if TYPE_CHECKING:
    from tests.conformance.driver import Host

VISIT_LIMIT_S = 120.0
ERAS = {"legacy": LEGACY, "modern": MODERN}
STEPS = 4
TOKEN = "steps"

Message = dict[str, Any]


@dataclass(frozen=True)
class Errand:
    """A tool, its arguments, and whether a result (and what came before it) is the right one."""

    tool: str
    arguments: Message
    is_right: Callable[[Message, list[Message]], bool]


def says(words: str) -> Callable[[Message, list[Message]], bool]:
    return lambda result, _: any(words in block.get("text", "") for block in result["content"])


def brings(kind: str) -> Callable[[Message, list[Message]], bool]:
    return lambda result, _: any(block["type"] == kind for block in result["content"])


def reports_every_step(result: Message, before: list[Message]) -> bool:
    reports = [one["params"] for one in before if one["method"] == "notifications/progress"]
    return [one["progress"] for one in reports if one["progressToken"] == TOKEN] == [1, 2, 3, 4]


ERRANDS = (
    Errand("echo", {"message": "보험 광고 \u2028 \U0001f50d"}, says("보험 광고 \u2028 \U0001f50d")),
    Errand("get-sum", {"a": 1.5, "b": 40.5}, says("is 42.")),
    Errand("get-tiny-image", {}, brings("image")),
    Errand("get-resource-links", {"count": 3}, brings("resource_link")),
    Errand("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, brings("resource")),
    Errand(
        "get-structured-content",
        {"location": "New York"},
        lambda result, _: {"temperature", "conditions", "humidity"} <= result["structuredContent"].keys(),
    ),
    Errand("trigger-long-running-operation", {"duration": 0.4, "steps": STEPS}, reports_every_step),
    Errand("trigger-elicitation-request", {}, says("User provided the requested information")),
    Errand("trigger-sampling-request", {"prompt": "p", "maxTokens": 10}, says("an answer")),
    Errand("get-roots-list", {}, says("roots")),
)


async def run_foreign() -> tuple[dict[tuple[str, str], Row], list[str]]:
    """Every errand for a host of each era: rows by (tool, era), and what went wrong."""
    rows: dict[tuple[str, str], Row] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="foreign-") as folder:
        port = free_port()
        command = [str(NODE), str(EVERYTHING), "streamableHttp"]
        server = Program(command, port, Path(folder) / "everything.log", {"PORT": str(port)})
        async with running(server):
            for era, version in ERAS.items():
                found = await _visited(f"http://127.0.0.1:{port}/mcp", version)
                rows |= {(tool, era): Row("FAIL" if wrong else "pass", (), 1) for tool, wrong in found.items()}
                problems += [f"server-everything, {era}, {tool}: {wrong}" for tool, wrong in found.items() if wrong]
    return rows, problems


async def _visited(url: str, version: str) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.conformance.foreign", url, version]
    ended = await run_to_end(command, VISIT_LIMIT_S)
    assert ended.code == 0, ended.stderr
    found: dict[str, str] = json.loads(ended.stdout)
    return found


def visit(url: str, version: str) -> dict[str, str]:
    """What went wrong with each tool; empty where nothing did."""
    from tests.conformance.driver import Host

    host = Host(url, version, "full")
    try:
        host.start()
        host.tools()
        return {errand.tool: _run(host, errand) for errand in ERRANDS}
    finally:
        host.end()
        host.exit_code()


def _run(host: "Host", errand: Errand) -> str:
    host.notifications.clear()
    try:
        result = host.call(errand.tool, errand.arguments, {"progressToken": TOKEN})
        return "" if errand.is_right(result, host.notifications) else f"not what it should bring: {result}"[:600]
    except Exception as error:  # one tool that breaks must not hide the others
        return repr(error)[:600]


if __name__ == "__main__":
    print(json.dumps(visit(*sys.argv[1:])))
