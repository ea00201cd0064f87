"""A pool of killable child processes that run the tasks of one module.

Owns who runs when (fair between jobs), what becomes of a child (timeout, cancellation and crash end it, a new one
takes its place) and what the caller is told. It refuses to know what the tasks do. All on the event loop, no threads:

    pool = ChildPool("decoder", "sam2_mcp_worker.media.decoder_child", size=2, config={...},
                     memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES)
    await pool.start()                                   # WorkerError: what the module's setup said
    result = await pool.run("pdf_page", {...}, timeout_s=8.0, job=call_id)     # dict, or WorkerError
    pool.stats()                                         # PoolStats, for get_status
    await pool.close()                                   # or: async with ChildPool(...) as pool
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.child_process import START_TIMEOUT_S, ChildProcess
from sam2_mcp_worker.execution.fair_queue import FairQueue

logger = logging.getLogger(__name__)

# Waits before a child that could not start, or ended while idle, is replaced: the first failures may be a passing
# lack of memory, the last value bounds the cost of a fault that stays to two processes a minute.
BACKOFF_S = (0.2, 1.0, 5.0, 30.0)
# A child that holds this much more private memory after a task than when it was new is replaced, because freed
# memory rarely goes back to the system. Decoders return to within 50 MiB after ordinary pages.
RECYCLE_GROWTH_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class ChildStats:
    """One child: `state` is `starting | idle | busy | failed`; memory as of the end of its last task."""

    pid: int | None
    state: str
    tasks: int
    rss_bytes: int
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What get_status shows. `restarts` counts replaced children, recycled ones included."""

    name: str
    size: int
    ready: int
    busy: int
    queued: int
    restarts: int
    start_error: str | None
    children: tuple[ChildStats, ...]


@dataclass(slots=True, eq=False)
class _Ticket:
    task: str
    params: dict[str, Any]
    timeout_s: float
    answer: asyncio.Future[dict[str, Any]]
    finish: bool
    child: ChildProcess | None = None


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of one child; its processes follow each other in it."""

    state: str = "starting"
    child: ChildProcess | None = None
    start_error: WorkerError | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first start has ended, well or badly."""


class ChildPool:
    """Children that run tasks, one each at a time.

    Args:
        name: shown in errors, logs and stats.
        module: the task module (see child.py).
        size: number of children.
        config: given to the module's `setup`; JSON only.
        memory_limit_bytes: address space of each child; 0 = unbounded.
        env: added to the few harmless variables that children inherit; keys and tokens are never inherited.
        recycle_growth_bytes: private memory above that of a new child at which it is replaced after a task; None =
            never, for engines whose working memory is meant to stay.
        start_timeout_s: a child that is not ready by then is ended.
        mend: what an agent can do when a task was stopped or its child lost; None = what helps with documents.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *,
        size: int,
        config: dict[str, Any],
        memory_limit_bytes: int,
        env: Mapping[str, str] | None = None,
        recycle_growth_bytes: int | None = RECYCLE_GROWTH_BYTES,
        start_timeout_s: float = START_TIMEOUT_S,
        mend: str | None = None,
    ) -> None:
        self.name = name
        self.size = size
        self._module = module
        self._config = config
        self._memory_limit_bytes = memory_limit_bytes
        self._env = dict(env or {})
        self._recycle_growth_bytes = recycle_growth_bytes
        self._start_timeout_s = start_timeout_s
        self._mend = mend
        self._queue: FairQueue[_Ticket] = FairQueue()
        self._work = asyncio.Event()
        self._slots = [_Slot() for _ in range(size)]
        self._keepers: list[asyncio.Task[None]] = []
        self._restarts = 0
        self._closed = False

    def __repr__(self) -> str:
        s = self.stats()
        return (
            f"<ChildPool {s.name} [ready {s.ready}/{s.size}, busy {s.busy}, queued {s.queued}, restarts {s.restarts}]>"
        )

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, *, wait: bool = True) -> None:
        """Start all children; they load in parallel.

        Args:
            wait: return when all are ready. With False it returns at once, tasks queue until a child is ready, and
                `wait_ready` or `stats().ready` tells when.

        Raises:
            WorkerError: why a child cannot start, as its module's `setup` said it. The pool goes on trying, slower
                and slower, until `close`.
        """
        assert not self._keepers, "a pool starts once"
        self._keepers = [
            asyncio.create_task(self._keep(slot), name=f"{self.name}-{i}") for i, slot in enumerate(self._slots)
        ]
        if wait:
            await self.wait_ready()

    async def wait_ready(self) -> None:
        """Wait until every child has loaded once; raises what the first that failed had to say."""
        for slot in self._slots:
            await slot.settled.wait()
        for slot in self._slots:
            if slot.start_error is not None:
                raise _copy(slot.start_error)

    async def close(self) -> None:
        """End all children. Tasks that run or wait fail with `worker_stopping`. Safe to call twice."""
        self._closed = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self._fail_waiting(self._stopping())

    async def run(
        self, task: str, params: dict[str, Any], *, timeout_s: float, job: str, finish: bool = False
    ) -> dict[str, Any]:
        """Run one task in a child and return its result.

        Args:
            task: a name in the module's TASKS.
            params: JSON only; large data goes through files.
            timeout_s: time to run, counted from the moment that a child begins. Waiting for a child is bounded by
                the caller: cancel the call.
            job: key of the fair order; the tasks of one tool call share one.
            finish: let a task that has begun run to its end though its caller is cancelled: for children whose
                memory is worth more than the rest of a short task.

        Cancelling a waiting task removes it. Cancelling a running one kills its child before CancelledError leaves
        here, so the task's files are not written any more; with `finish` they may be.

        Raises:
            WorkerError: the task's own; `decoder_timeout`; `decoder_crashed`, naming the signal; `worker_stopping`;
                or, when no child can start, the reason for that.
        """
        self._check_usable()
        ticket = _Ticket(task, params, timeout_s, asyncio.get_running_loop().create_future(), finish)
        if timeout_s <= 0:
            raise self._timed_out(ticket)
        self._queue.push(job, ticket)
        self._work.set()
        try:
            return await ticket.answer
        except asyncio.CancelledError:
            if not ticket.answer.cancelled():
                ticket.answer.exception()  # answered in the same instant: mark as seen
            elif ticket.child is None:
                self._queue.remove(job, ticket)
            elif not finish:
                ticket.child.kill()
            raise

    def stats(self) -> PoolStats:
        """A snapshot; reads no files."""
        states = [slot.state for slot in self._slots]
        errors = [slot.start_error for slot in self._slots if slot.start_error]
        return PoolStats(
            name=self.name,
            size=self.size,
            ready=states.count("idle") + states.count("busy"),
            busy=states.count("busy"),
            queued=len(self._queue),
            restarts=self._restarts,
            start_error=errors[0].public_text if errors else None,
            children=tuple(map(_child_stats, self._slots)),
        )

    def _check_usable(self) -> None:
        if self._closed or not self._keepers:
            raise self._stopping()
        errors = [slot.start_error for slot in self._slots]
        if errors[0] is not None and all(errors):
            raise _copy(errors[0])

    def _stopping(self) -> WorkerError:
        return WorkerError(
            "worker_stopping", f"the {self.name} pool is not running", next_step="Call again in a few seconds"
        )

    def _fail_waiting(self, error: WorkerError) -> None:
        for ticket in self._queue.drain():
            _fail(ticket, error)

    async def _keep(self, slot: _Slot) -> None:
        """Keep one place filled until the pool closes."""
        failures = 0
        while True:
            try:
                useful = await self._live(slot)
            except Exception as error:  # whatever it is, the place must not stay empty for ever
                useful = False
                self._note_failed_start(slot, error)
            self._restarts += 1
            if useful:
                failures = 0
                continue
            await asyncio.sleep(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
            failures += 1

    async def _live(self, slot: _Slot) -> bool:
        """One child from start to end; True when it ended over a task and not by itself."""
        child = await ChildProcess.spawn(
            self._module, self._config, memory_limit_bytes=self._memory_limit_bytes, env=self._env
        )
        slot.child = child
        try:
            await child.wait_ready(self._start_timeout_s)
            slot.start_error = None
            slot.state = "idle"
            slot.settled.set()
            return await self._serve(slot, child)
        finally:
            if slot.state in ("starting", "failed"):
                child.kill()  # it is loading, and would not see the end of its pipe
            slot.state = "starting"
            slot.child = None
            await child.close()

    def _note_failed_start(self, slot: _Slot, error: Exception) -> None:
        if not isinstance(error, WorkerError):
            error = WorkerError(
                "worker_not_ready",
                f"a process of the {self.name} pool cannot start ({error})",
                next_step="Ask the operator to read the worker's log",
            )
        logger.error("%s child cannot start: %s", self.name, error)
        slot.start_error = error
        slot.state = "failed"
        slot.settled.set()
        if all(other.start_error for other in self._slots):
            self._fail_waiting(error)

    async def _serve(self, slot: _Slot, child: ChildProcess) -> bool:
        """Run tasks until the child is used up (True) or ends by itself while idle (False)."""
        while True:
            ticket = await self._next_ticket(child)
            if ticket is None:
                logger.warning("idle %s child %d ended: it is replaced", self.name, child.pid)
                return False
            slot.state = "busy"
            await self._execute(child, ticket)
            if not child.alive:
                return True
            slot.state = "idle"
            if self._is_bloated(child):
                logger.info(
                    "%s child %d is replaced: it holds %d bytes", self.name, child.pid, child.memory["rss_bytes"]
                )
                return True

    def _is_bloated(self, child: ChildProcess) -> bool:
        growth = child.memory["private_bytes"] - child.private_bytes_at_start
        return self._recycle_growth_bytes is not None and growth > self._recycle_growth_bytes

    async def _next_ticket(self, child: ChildProcess) -> _Ticket | None:
        """The next task in fair order, or None when the idle child has ended."""
        while child.alive:
            ticket = self._queue.pop()
            if ticket is not None and ticket.answer.done():
                continue  # cancelled, and its caller has not run yet
            if ticket is not None:
                ticket.child = child
                return ticket
            self._work.clear()
            work = asyncio.ensure_future(self._work.wait())
            try:
                await asyncio.wait({work, child.exited}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                work.cancel()
        return None

    async def _execute(self, child: ChildProcess, ticket: _Ticket) -> None:
        """Run one task to its end, its timeout or its cancellation; a child that did not answer is killed."""
        call = asyncio.ensure_future(child.call(ticket.task, ticket.params))
        awaited: set[asyncio.Future[dict[str, Any]]] = {call} if ticket.finish else {call, ticket.answer}
        try:
            await asyncio.wait(awaited, timeout=ticket.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                self._pass_on(call, child, ticket)
            else:
                child.kill()
                _fail(ticket, self._timed_out(ticket))
        except BaseException:
            child.kill()
            _fail(ticket, self._stopping())
            raise
        finally:
            call.cancel()
            await asyncio.wait({call})

    def _pass_on(self, call: asyncio.Task[dict[str, Any]], child: ChildProcess, ticket: _Ticket) -> None:
        error = call.exception()
        if error is None:
            if not ticket.answer.done():
                ticket.answer.set_result(call.result())
        elif isinstance(error, WorkerError):
            _fail(ticket, error)
        else:
            child.kill()
            logger.warning("%s child %d was lost in %s: %s", self.name, child.pid, ticket.task, error)
            _fail(ticket, self._crashed(error))

    def _timed_out(self, ticket: _Ticket) -> WorkerError:
        return WorkerError(
            "decoder_timeout",
            f"{ticket.task} was stopped after {ticket.timeout_s:.1f} s",
            rule=f"the {self.name} had {ticket.timeout_s:.1f} s for it",
            next_step=self._mend
            or "Call again with fewer or smaller pages; if it fails again, this input cannot be read here",
        )

    def _crashed(self, error: BaseException) -> WorkerError:
        return WorkerError(
            "decoder_crashed",
            f"the {self.name} process ended while it worked on this input ({error})",
            # Native code that gets no memory aborts: without the figure, a bomb looks like a defect.
            rule=f"it may use {self._memory_limit_bytes // 2**20} MiB of memory" if self._memory_limit_bytes else "",
            next_step=self._mend
            or "Save the file anew with another program, or leave this part out; other parts are not affected",
        )


def _fail(ticket: _Ticket, error: WorkerError) -> None:
    if not ticket.answer.done():
        ticket.answer.set_exception(_copy(error))


def _copy(error: WorkerError) -> WorkerError:
    """One exception object per raise: a shared one would gather tracebacks."""
    return WorkerError(error.code, error.what, rule=error.rule, next_step=error.next_step, private=error.private)


def _child_stats(slot: _Slot) -> ChildStats:
    child = slot.child
    if child is None:
        return ChildStats(None, slot.state, 0, 0, 0)
    return ChildStats(child.pid, slot.state, child.tasks, child.memory["rss_bytes"], child.memory["peak_rss_bytes"])
