"""Runs groups: starts the servers, starts the suite, and hands the outcome to the judge."""

import shlex
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from tests.conformance.checks import (
    Check,
    Judgement,
    Results,
    judge,
    listed_scenarios,
    read_baseline,
    read_results,
    required_scenarios,
)
from tests.conformance.child import Ended, run_to_end
from tests.conformance.groups import BASELINES, ClientGroup, Group, ServerGroup
from tests.conformance.toolchain import NODE, SUITE
from tests.e2e.rehearsal.processes import Program, free_port, running

# A scenario that hangs ends here; the slowest honest one takes 3 s on a busy machine.
SCENARIO_LIMIT_MS = 60_000
SUITE_LIMIT_S = 300.0
# Enough for the last traceback.
LOG_CHARACTERS = 2000
CONTRACT = "stdio-contract"


async def run_group(group: Group, scenarios: list[str]) -> Judgement:
    """Run one group and judge it.

    Raises:
        TimeoutError: the suite did not end.
    """
    baseline = read_baseline(BASELINES / f"{group.key}.yml")
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        if isinstance(group, ServerGroup):
            results = await _server_results(group, folder)
            scenarios = [*scenarios, *([CONTRACT] if group.program == "bridge" else [])]
        else:
            results = await _client_results(group, scenarios, folder)
        judgement = judge(scenarios, results, baseline, group.not_applicable)
        if judgement.problems:
            judgement.problems += _logs(folder)
    return judgement


def _logs(folder: Path) -> list[str]:
    """What the servers of a group said at the end."""
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace").strip() for path in folder.glob("*.log")}
    return [f"{name}: {text[-LOG_CHARACTERS:]}" for name, text in sorted(texts.items()) if text]


async def scenarios_of(group: Group) -> list[str]:
    """The names of all scenarios that the suite has for a group's side and version."""
    frozen = isinstance(group, ServerGroup) and group.requirements
    arguments = ["list", f"--{group.side}", *(["--requirements", group.version] if frozen else [])]
    output = (await suite(*arguments)).stdout
    return required_scenarios(output, group.side) if frozen else listed_scenarios(output, group.version)


async def suite(*arguments: str) -> Ended:
    """Run the suite with these arguments."""
    return await run_to_end([str(NODE), str(SUITE), *arguments], SUITE_LIMIT_S)


async def _server_results(group: ServerGroup, folder: Path) -> Results:
    async with _served(group, folder) as url:
        selected = ["--requirements", group.version] if group.requirements else _suite_of(group.version)
        limit = ["--timeout", str(SCENARIO_LIMIT_MS)]
        ended = await suite("server", "--url", url, *selected, *limit, "-o", str(folder / "results"))
        results = read_results(folder / "results")
        assert results, f"the suite ran nothing: {ended.stderr or ended.stdout}"
        if group.program == "bridge":
            results[CONTRACT] = await _contract(url)
    return results


def _suite_of(version: str) -> list[str]:
    return ["--suite", "all", "--spec-version", version]


async def _contract(url: str) -> list[Check]:
    async with httpx.AsyncClient(trust_env=False) as client:
        breaches = (await client.get(url.removesuffix("/mcp") + "/breaches")).raise_for_status().json()
    failures = [Check(CONTRACT, "FAILURE", breach) for breach in breaches]
    return failures or [Check(CONTRACT, "SUCCESS")]


@asynccontextmanager
async def _served(group: ServerGroup, folder: Path) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:

        async def start(module: str, *arguments: str) -> str:
            port = free_port()
            command = [sys.executable, "-m", f"tests.conformance.{module}", "--port", str(port), *arguments]
            await stack.enter_async_context(running(Program(command, port, folder / f"{module}.log")))
            return f"http://127.0.0.1:{port}/mcp"

        if group.program == "worker":
            yield await start("worker_server", "--data-dir", str(folder / "data"))
        else:
            upstream = await start("everything_server", "--era", group.upstream_era)
            yield await start("shim", "--url", upstream, "--profile", group.profile)


async def _client_results(group: ClientGroup, scenarios: list[str], folder: Path) -> Results:
    driver = [sys.executable, "-m", "tests.conformance.driver", "--host-era", group.host_era]
    results: Results = {}
    for scenario in scenarios:
        if "/" in scenario:  # the authorization scenarios, none of which concerns the bridge
            continue
        ended = await suite(
            "client",
            *("--command", shlex.join(driver)),
            *("--scenario", scenario, "--spec-version", group.version),
            *("--timeout", str(SCENARIO_LIMIT_MS), "-o", str(folder)),
        )
        results |= read_results(folder)
        checks = results.setdefault(scenario, [])
        if ended.code != 0 and (words := _last_words(folder, scenario)):
            checks.append(Check("driver", "FAILURE", words))
    return results


def _last_words(folder: Path, scenario: str) -> str:
    """What the driver and its bridge said at the end; nothing unless the driver failed."""
    errors = [path.read_text(encoding="utf-8") for path in folder.glob(f"{scenario}-*/stderr.txt")]
    lines = [line for text in errors for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-4:])
