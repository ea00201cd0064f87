"""The order of service, as a pure structure."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.execution.fair_queue import FairQueue

JOBS = st.sampled_from("abcd")


@given(st.lists(JOBS, max_size=60))
def test_every_item_is_served_once_and_in_its_jobs_own_order(jobs: list[str]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for number, job in enumerate(jobs):
        queue.push(job, (job, number))
    served = [queue.pop() for _ in jobs]
    assert queue.pop() is None
    assert sorted(map(str, served)) == sorted(map(str, ((job, n) for n, job in enumerate(jobs))))
    for job in set(jobs):
        numbers = [item[1] for item in served if item and item[0] == job]
        assert numbers == sorted(numbers)


@given(st.lists(JOBS, min_size=1, max_size=60))
def test_no_waiting_job_is_passed_over_twice_by_another(jobs: list[str]) -> None:
    queue: FairQueue[str] = FairQueue()
    for job in jobs:
        queue.push(job, job)
    waiting = Counter(jobs)
    since: dict[str, Counter[str]] = {job: Counter() for job in waiting}
    while (job := queue.pop()) is not None:
        waiting[job] -= 1
        since[job] = Counter()
        for other, left in waiting.items():
            if left and other != job:
                since[other][job] += 1
                assert since[other][job] <= 1


@given(st.lists(st.tuples(st.sampled_from(["push", "pop", "remove"]), JOBS), max_size=80))
def test_length_and_content_follow_a_plain_model(steps: list[tuple[str, str]]) -> None:
    queue: FairQueue[int] = FairQueue()
    model: dict[str, deque[int]] = {job: deque() for job in "abcd"}
    for number, (step, job) in enumerate(steps):
        if step == "push":
            queue.push(job, number)
            model[job].append(number)
        elif step == "pop":
            item = queue.pop()
            holders = [waiting for waiting in model.values() if waiting and waiting[0] == item]
            assert len(holders) == (item is not None)
            for waiting in holders:
                waiting.popleft()
        else:
            item = model[job][-1] if model[job] else -1
            assert queue.remove(job, item) is bool(model[job])
            if model[job]:
                model[job].pop()
        assert len(queue) == sum(map(len, model.values()))
    assert sorted(queue.drain()) == sorted(item for waiting in model.values() for item in waiting)
    assert len(queue) == 0
