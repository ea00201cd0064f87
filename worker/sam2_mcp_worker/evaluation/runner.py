"""Carries out the plan: every case as often as asked, each run with an id of its own; finished runs are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation.case_files import Case, CaseFile
from sam2_mcp_worker.evaluation.runs import Outcome, RefusedRun, RunRecord, RunStore, new_run_id

Say = Callable[[str], None]
# Longer than any case of tools: thirty calls of 30 s. Workflows have a limit of their own.
RUN_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A case with its file, its sources (path and SHA-256 by name) and the digest of what it means."""

    file: CaseFile
    case: Case
    paths: Mapping[str, Path]
    digest: str


RunOne = Callable[[Planned, str], Awaitable[Outcome]]
"""Carries out one run under a run id."""


async def evaluate(
    plan: Sequence[Planned],
    run_one: RunOne,
    store: RunStore,
    say: Say,
    *,
    repeats: Sequence[int],
    parallel: int = 1,
    again: bool = False,
) -> list[RunRecord]:
    """All runs of these repeats of the plan, kept ones included, in the order of cases and repeats.

    `again`: refused runs of an earlier evaluation are tried once more; the last attempt is the one that counts.
    """
    slots = asyncio.Semaphore(parallel)
    last = max(repeats)
    done: dict[tuple[str, int], RunRecord] = {}

    async def one(planned: Planned, repeat: int) -> None:
        kept = _kept(planned, repeat, store, again)
        if kept is None:
            before = store.finished(planned.case.id, planned.digest, repeat)
            async with slots:
                kept = await _run(planned, repeat, run_one, store, before)
            say(_line(kept, last))
        done[(planned.case.id, repeat)] = kept

    async with asyncio.TaskGroup() as group:
        # Repeat by repeat: what changes over time shows in every case, and a broken target shows early.
        for repeat in repeats:
            for planned in plan:
                group.create_task(one(planned, repeat))
    return [done[(planned.case.id, repeat)] for planned in plan for repeat in repeats]


def pending(plan: Sequence[Planned], store: RunStore, repeats: Sequence[int], *, again: bool) -> bool:
    """Whether `evaluate` would run anything."""
    return any(_kept(planned, repeat, store, again) is None for planned in plan for repeat in repeats)


def _kept(planned: Planned, repeat: int, store: RunStore, again: bool) -> RunRecord | None:
    kept = store.finished(planned.case.id, planned.digest, repeat)
    return None if kept is None or (again and not kept.counts) else kept


async def _run(planned: Planned, repeat: int, run_one: RunOne, store: RunStore, before: RunRecord | None) -> RunRecord:
    run_id = new_run_id(planned.case.id, repeat)
    started_at, started_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    code, detail, outcome = "", "", Outcome(None, None)
    try:
        async with asyncio.timeout(RUN_LIMIT_S):
            outcome = await run_one(planned, run_id)
    except RefusedRun as refused:
        code, detail = refused.code, refused.detail
        outcome = Outcome(None, None, text=refused.text)
    except WorkerError as error:
        code, detail = "target_error", error.public_text
    except TimeoutError:
        code, detail = "timeout", f"not finished after {RUN_LIMIT_S:g} s"
    # Trying until it works is a choice that a reader has to know of.
    notes = outcome.notes if before is None else (f"tried again after {before.code}", *outcome.notes)
    record = RunRecord(
        planned.case.id,
        planned.digest,
        repeat,
        run_id,
        started_at,
        round(time.monotonic() - started_s, 2),
        code,
        detail,
        outcome.label,
        outcome.findings,
        outcome.undone,
        notes,
        outcome.calls,
    )
    store.keep(record, outcome.text)
    return record


def _line(run: RunRecord, last: int) -> str:
    found = "findings not listed" if run.findings is None else f"{len(run.findings)} findings"
    said = f"refused, {run.code}: {run.detail}" if run.code else f"{run.label or 'no label'}, {found}"
    return f"{run.case} {run.repeat}/{last}: {said} ({run.elapsed_s:.1f} s)"
