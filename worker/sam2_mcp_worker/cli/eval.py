"""`eval CASES.toml...`: run cases through worker, station or workflow, score them and write the report."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from sam2_mcp_worker.cli.call import worker_at
from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.cli.eval_sources import plan_of
from sam2_mcp_worker.cli.eval_targets import WorkerTarget, station_target
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation.case_files import Case, CaseFile, load_case_files
from sam2_mcp_worker.evaluation.ports import ToolTarget
from sam2_mcp_worker.evaluation.report import evaluation_report
from sam2_mcp_worker.evaluation.runner import Planned, RunOne, evaluate, pending
from sam2_mcp_worker.evaluation.runs import Outcome, RunRecord, RunStore
from sam2_mcp_worker.evaluation.scoring import Rate, Score, score
from sam2_mcp_worker.evaluation.tool_run import run_tools
from sam2_mcp_worker.evaluation.workflow import WorkflowTarget
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.version import worker_version

# The workflow's bearer token: from here and nowhere else, so that it stands in no file, history or report.
TOKEN_VARIABLE = "SAM2_MCP_EVAL_TOKEN"  # noqa: S105 (a name)
MAX_REPEATS = 100
MAX_PARALLEL = 16


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "eval", help="run cases, score labels and findings: eval cases.toml --repeats 5 (docs/evaluation.md)"
    )
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASES.toml", help="case files")
    parser.add_argument("--url", help="a worker that runs already; without it one is started")
    parser.add_argument("--station", metavar="URL", help="call the tools through this station")
    parser.add_argument("--bridge-url", metavar="URL", help="the worker as bridges reach it, e.g. from a container")
    parser.add_argument("--workflow", metavar="URL", help=f"ask this endpoint; bearer token in {TOKEN_VARIABLE}")
    parser.add_argument("--repeats", type=_within(MAX_REPEATS), default=1, help="runs of each case")
    parser.add_argument("--parallel", type=_within(MAX_PARALLEL), default=1, help="workflow runs at once (tools: one)")
    parser.add_argument("--only", action="append", default=[], metavar="CASE", help="only this case; may be repeated")
    parser.add_argument("--again", action="store_true", help="try refused runs of an earlier evaluation once more")
    parser.add_argument("--out", type=Path, default=Path("eval-out"), help="folder for runs, answers and report")
    parser.add_argument("--check", action="store_true", help="end with 1, too, when a label or a finding is not right")
    return parser


def _within(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"from 1 to {most}")
        return value

    return number


def run(arguments: argparse.Namespace) -> int:
    """0: every run counts; 1: some do not, or with --check something was not as expected."""
    for name in ("url", "station", "bridge_url", "workflow"):
        _check_url(name, getattr(arguments, name))
    if arguments.workflow and arguments.station:
        raise WorkerError("eval_two_targets", "--workflow and --station exclude each other", next_step="give one")
    files = load_case_files(arguments.cases)
    chosen = _chosen(files, arguments)
    store = RunStore(arguments.out)
    if store.damaged:
        _say(f"{store.damaged} damaged lines in {arguments.out / 'runs.jsonl'} do not count")
    target = _target(arguments)
    plan = plan_of(chosen, arguments.out, target)
    if store.kept:
        _say(
            f"{len(store.kept)} runs of earlier are kept in {arguments.out} and not repeated; another --out begins anew"
        )
    runs = asyncio.run(_evaluate(arguments, plan, store))
    result = score([planned.case for planned in plan], runs)
    title = ", ".join(file.title for file in files)
    _write(arguments.out, title, target, result, plan, runs)
    if arguments.json:
        sys.stdout.write(json.dumps(_facts(title, target, result), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_table(result) + f"written: {arguments.out / 'report.html'}\n")
    return int(not result.whole or (arguments.check and not result.flawless))


def _target(arguments: argparse.Namespace) -> str:
    """Whom the runs ask, in words; runs that were asked of another do not stand for them."""
    if arguments.workflow:
        return f"the workflow at {arguments.workflow.partition('?')[0]}"
    worker = f"the worker at {arguments.url}" if arguments.url else f"a new worker {worker_version()} for each repeat"
    return f"tools of {worker}" + (f", through the station at {arguments.station}" if arguments.station else "")


def _check_url(name: str, url: str | None) -> None:
    """Addresses go into the report, so no password may stand in one."""
    if url is None:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise WorkerError(
            "eval_url",
            f"--{name.replace('_', '-')} is no http(s) address without user and password",
            next_step=f"give http://127.0.0.1:8765 or the like; tokens go into {TOKEN_VARIABLE}",
        )


def _chosen(files: Sequence[CaseFile], arguments: argparse.Namespace) -> list[tuple[CaseFile, Case]]:
    """The cases that the target can be asked.

    Raises:
        WorkerError: one that was named is not there, or none is left.
    """
    pairs = [(file, case) for file in files for case in file.cases]
    if unknown := sorted(set(arguments.only) - {case.id for _, case in pairs}):
        raise WorkerError("case_unknown", f"no case {unknown[0]!r}", next_step="see the ids in the case files")
    pairs = [pair for pair in pairs if not arguments.only or pair[1].id in arguments.only]
    way, wanted = ("input", "--workflow") if arguments.workflow else ("calls", "tools")
    fitting = [(file, case) for file, case in pairs if getattr(case, way)]
    for _, case in pairs:
        if not getattr(case, way):
            _say(f"{case.id}: left out, it has no {way} for {wanted}")
    if not fitting:
        raise WorkerError("no_case_fits", f"no case has {way}", next_step=f"{wanted} needs cases with {way}")
    return fitting


async def _evaluate(arguments: argparse.Namespace, plan: Sequence[Planned], store: RunStore) -> list[RunRecord]:
    every = range(1, arguments.repeats + 1)
    # A worker of our own begins anew for each repeat: its cache would give all but the first the same answer.
    rounds = [[repeat] for repeat in every] if _own_worker(arguments) else [list(every)]
    runs: list[RunRecord] = []
    for repeats in rounds:
        waiting = pending(plan, store, repeats, again=arguments.again)
        async with _asked(arguments, plan) if waiting else nullcontext(_nobody) as run_one:
            runs += await evaluate(
                plan, run_one, store, _say, repeats=repeats, parallel=_parallel(arguments), again=arguments.again
            )
    order = {planned.case.id: index for index, planned in enumerate(plan)}
    return sorted(runs, key=lambda run: (order[run.case], run.repeat))


def _own_worker(arguments: argparse.Namespace) -> bool:
    return not arguments.url and not arguments.workflow


def _parallel(arguments: argparse.Namespace) -> int:
    return int(arguments.parallel) if arguments.workflow else 1


async def _nobody(planned: Planned, run_id: str) -> Outcome:
    raise AssertionError(f"{planned.case.id}: {run_id} was not pending")


@asynccontextmanager
async def _asked(arguments: argparse.Namespace, plan: Sequence[Planned]) -> AsyncIterator[RunOne]:
    """Whoever carries out the runs, for the length of the block."""
    if arguments.workflow:
        yield _workflow(arguments, any(planned.paths for planned in plan))
        return
    with TemporaryDirectory(prefix="sam2-mcp-eval-") as data_dir:
        async with worker_at(arguments.url, data_dir=Path(data_dir)) as worker:
            yield _tools(
                station_target(arguments.station, arguments.bridge_url, worker)
                if arguments.station
                else WorkerTarget(worker)
            )


def _tools(target: ToolTarget) -> RunOne:
    async def call(planned: Planned, run_id: str) -> Outcome:
        return await run_tools(target, planned.file, planned.case, run_id, planned.paths)

    return call


def _workflow(arguments: argparse.Namespace, with_files: bool) -> RunOne:
    if with_files and not arguments.url:
        raise WorkerError(
            "workflow_needs_url", "the cases have sources", next_step="give the workflow's worker with --url"
        )
    workflow = WorkflowTarget(arguments.workflow, os.environ.get(TOKEN_VARIABLE))
    worker = WorkerClient(arguments.url, Settings().read_token()) if with_files else None

    async def ask(planned: Planned, run_id: str) -> Outcome:
        handles = {} if worker is None else {name: await worker.upload(path) for name, path in planned.paths.items()}
        return await workflow.run(planned.file, planned.case, run_id, handles)

    return ask


def _write(
    out_dir: Path, title: str, target: str, result: Score, plan: Sequence[Planned], runs: Sequence[RunRecord]
) -> None:
    by_case: Mapping[str, list[RunRecord]] = {planned.case.id: [] for planned in plan}
    for record in runs:
        by_case[record.case].append(record)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = evaluation_report(title, now, target, result, by_case)
    (out_dir / "report.html").write_text(report, encoding="utf-8")
    facts = json.dumps(_facts(title, target, result), ensure_ascii=False, indent=2)
    (out_dir / "score.json").write_text(facts + "\n", encoding="utf-8")


def _facts(title: str, target: str, result: Score) -> dict[str, Any]:
    about = {"title": title, "target": target, "whole": result.whole, "flawless": result.flawless}
    return about | dataclasses.asdict(result)


def _table(result: Score) -> str:
    lines = ["| case | runs that count | labels | agreement | recall | precision |", "|---|---|---|---|---|---|"]
    for case in result.cases:
        labels = ", ".join(f"{label} {count}" for label, count in case.labels.items())
        rates = " | ".join(map(_rate, (case.agreement, case.recall, case.precision)))
        lines.append(f"| {case.id} | {case.scored}/{case.attempts} | {labels} | {rates} |")
    rates = " | ".join(map(_rate, (result.agreement, result.recall, result.precision)))
    lines.append(f"| all | {result.scored}/{result.attempts} | | {rates} |")
    lines += [f"refused: {code} {count}" for code, count in sorted(result.refused.items())]
    return "\n".join(lines) + "\n"


def _rate(rate: Rate | None) -> str:
    return "-" if rate is None else f"{rate.share:.2f} [{rate.low:.2f}, {rate.high:.2f}]"


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
