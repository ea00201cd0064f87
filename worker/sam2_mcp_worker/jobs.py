"""Work that outlives the call that started it.

A job is a fan-out whose Coverage several calls may look at, one after the other or at once. A call waits for the job
until its own deadline, reports what is settled by then and leaves. The job goes on for a limited time, so that the
next call with the cursor finds more. A job that every caller cancelled stops at once: nobody wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sam2_mcp_worker.deadline import Deadline, deadline_passed
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.spending import SpendBook

# A job lives as long as somebody asks for it; this bounds one that is asked for all day.
JOB_LIMIT_S = 24 * 3600.0
# A finished job is kept this long, so that the next page of a long answer needs no second look at failed items.
KEEP_FINISHED_S = 120.0

Start = Callable[["Job"], Awaitable[None]]
Progress = Callable[[int, int], Awaitable[None]]
"""Told how many items are settled, of how many."""


class Job:
    """A running or finished fan-out over page, frame or tile numbers."""

    def __init__(self, key: str, items: tuple[int, ...]) -> None:
        self.key = key
        self.coverage: Coverage[int, Any] = Coverage(items)
        self.spent = SpendBook()
        self.notes: dict[str, Any] = {}  # what the pipeline keeps between calls, such as the handle of its report
        self.waiting = 0
        self.wanted = False  # a call left it unfinished and may come back for it
        self.again = False  # what is settled may come out better next time
        self.error: Exception | None = None
        self.error_told = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running"
        return (
            f"<Job {self.key[:8]} {state} [{self.coverage.settled}/{len(self.coverage.items)}, {self.waiting} waiting]>"
        )

    @property
    def finished(self) -> bool:
        """Whether nothing will be settled any more."""
        return self.task is not None and self.task.done()

    def raise_error(self) -> None:
        """Raise what ended the job early, if something did. The next call after that starts it anew."""
        if self.error is not None:
            self.error_told = True
            raise self.error

    async def wait(self, deadline: Deadline) -> None:
        """Wait until everything is settled or the deadline is reached; never raises the job's errors."""
        while not (self.finished or self.coverage.complete or deadline.expired):
            await self.wait_beyond(self.coverage.settled, deadline)

    async def wait_telling(
        self, deadline: Deadline, progress: Progress | None, enough: Callable[[], bool] = lambda: False
    ) -> None:
        """As `wait`, and no longer than until there is `enough`; tells `progress` before each wait for a change."""
        while not (self.finished or self.coverage.complete or deadline.expired or enough()):
            settled = self.coverage.settled
            if progress is not None:
                await progress(settled, len(self.coverage.items))
            await self.wait_beyond(settled, deadline)

    async def wait_beyond(self, settled: int, deadline: Deadline) -> None:
        """Wait until more than `settled` items are settled, the job has finished, or the deadline is reached."""
        assert self.task is not None
        while not (self.finished or self.coverage.settled > settled or deadline.expired):
            change = asyncio.ensure_future(self.coverage.changed.wait())
            try:
                await asyncio.wait(
                    {change, self.task}, timeout=deadline.remaining_s(), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                change.cancel()


class Jobs:
    """All jobs of this worker, by key."""

    def __init__(self, background_limit_s: float) -> None:
        self._background_limit_s = background_limit_s
        self._jobs: dict[str, Job] = {}

    def __repr__(self) -> str:
        return f"<Jobs [{self.running} running, {len(self._jobs)} known]>"

    @property
    def running(self) -> int:
        """How many jobs still work."""
        return sum(not job.finished for job in self._jobs.values())

    def join(self, key: str, items: tuple[int, ...], start: Start, *, retry: bool = False) -> JobVisit:
        """A context in which the caller takes part in the job `key`, which is started when there is none.

        With `retry` a finished job in which items failed, or may come out better, is not good enough: it is started
        anew.
        """
        job = self._jobs.get(key)
        if job is None or (job.finished and _wanting(job, retry=retry)):
            before = job
            job = self._jobs[key] = Job(key, items)
            if before is not None:
                job.spent = before.spent  # nobody may have been told of all of it
            job.task = asyncio.create_task(self._run(job, start), name=f"job {key[:8]}")
        return JobVisit(self, job)

    async def _run(self, job: Job, start: Start) -> None:
        try:
            await start(job)
        except Exception as error:
            job.error = error  # for the next call that looks
        finally:
            if job.waiting == 0:
                self._forget_later(job)

    def enter(self, job: Job) -> None:
        """One more caller waits."""
        job.waiting += 1
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None

    def leave(self, job: Job, *, cancelled: bool) -> None:
        """A caller goes. A job that every caller cancelled stops; otherwise it goes on for the limit."""
        job.waiting -= 1
        job.wanted |= not cancelled
        if job.waiting > 0:
            return
        if job.finished:
            self._forget_later(job)
        elif not job.wanted or self._background_limit_s <= 0:
            self._stop(job)
        else:
            job.timer = asyncio.get_running_loop().call_later(self._background_limit_s, self._stop, job)

    def _forget_later(self, job: Job) -> None:
        if job.timer is not None:
            job.timer.cancel()
        job.timer = asyncio.get_running_loop().call_later(KEEP_FINISHED_S, self._forget, job)

    def _forget(self, job: Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]

    def _stop(self, job: Job) -> None:
        if job.task is not None:
            job.task.cancel()
        self._forget(job)

    async def close(self) -> None:
        """Stop everything."""
        jobs = list(self._jobs.values())
        for job in jobs:
            if job.timer is not None:
                job.timer.cancel()
            self._stop(job)
        await asyncio.gather(*(job.task for job in jobs if job.task), return_exceptions=True)


def _wanting(job: Job, *, retry: bool) -> bool:
    """Whether a finished job left something undone that another run may do."""
    if retry and (job.coverage.failed or job.again):
        return True
    return not job.coverage.complete and (job.error is None or job.error_told)


class JobVisit:
    """`async with jobs.join(...) as job`: takes part in a job and leaves it properly, cancelled or not."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self._jobs = jobs
        self._job = job

    async def __aenter__(self) -> Job:
        self._jobs.enter(self._job)
        return self._job

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        dropped = kind is not None and issubclass(kind, asyncio.CancelledError)
        # A call that ran out of its time is cancelled too, and its agent will come back for the rest.
        self._jobs.leave(self._job, cancelled=dropped and not deadline_passed())
