"""The pool on real child processes: whatever a task does, it costs that task and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from blockbuster import BlockBuster, blockbuster_ctx

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool

ROOT = Path(__file__).resolve().parents[3]
TASKS = "tests.fakes.child_tasks"
ENV = {"PYTHONPATH": str(ROOT)}
MiB = 2**20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    with blockbuster_ctx("sam2_mcp_worker") as guard:
        yield guard


def make_pool(size: int = 1, **options: Any) -> ChildPool:
    options = {"config": {}, "memory_limit_bytes": 1024 * MiB, "env": ENV, **options}
    return ChildPool("test", TASKS, size=size, **options)


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    async with make_pool() as pool:
        yield pool


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a state that another process brings about."""
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.01)


def exists(pid: int) -> bool:
    """True while the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_a_result_comes_back_although_the_task_prints_forged_answers(pool: ChildPool) -> None:
    result = await pool.run("echo", {"text": "한글 \n ok"}, timeout_s=10, job="a")
    assert result["text"] == "한글 \n ok"
    assert "forged" not in result


async def test_a_child_gets_its_config_but_neither_input_nor_secrets_nor_the_working_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("SAM2_MCP_TOKEN", "t")
    async with make_pool(config={"language": "kor"}, env={**ENV, "OMP_THREAD_LIMIT": "1"}) as pool:
        seen = await pool.run("describe", {}, timeout_s=10, job="a")
    assert seen["config"] == {"language": "kor"}
    assert seen["stdin"] == ""
    assert "OMP_THREAD_LIMIT" in seen["environment"]
    assert not {"ANTHROPIC_API_KEY", "SAM2_MCP_TOKEN"} & set(seen["environment"])


@pytest.mark.parametrize(("how", "named"), [("abort", "SIGABRT"), ("segfault", "SIGSEGV"), ("exit", "exit status 7")])
async def test_a_crash_fails_that_task_by_name_and_the_next_task_runs(pool: ChildPool, how: str, named: str) -> None:
    with pytest.raises(WorkerError) as caught:
        await pool.run("crash", {"how": how}, timeout_s=10, job="a")
    assert caught.value.code == "decoder_crashed"
    assert named in caught.value.what
    assert (await pool.run("echo", {"n": 1}, timeout_s=10, job="a"))["n"] == 1
    assert pool.stats().restarts == 1


@pytest.mark.parametrize("how", ["sleep", "native"])
async def test_a_hanging_task_is_killed_at_its_timeout_and_replaced(pool: ChildPool, tmp_path: Path, how: str) -> None:
    started = tmp_path / "pid"
    with pytest.raises(WorkerError) as caught:
        await pool.run("hang", {"how": how, "started": str(started)}, timeout_s=0.5, job="a")
    assert caught.value.code == "decoder_timeout"
    assert "0.5 s" in caught.value.public_text
    assert (await pool.run("echo", {"n": 1}, timeout_s=10, job="a"))["n"] == 1
    assert not exists(int(started.read_text(encoding="ascii")))


async def test_a_timeout_that_has_passed_costs_no_child(pool: ChildPool) -> None:
    pid = (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"]
    with pytest.raises(WorkerError, match="decoder_timeout"):
        await pool.run("echo", {}, timeout_s=0, job="a")
    assert (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"] == pid


async def test_a_memory_bomb_is_an_error_and_the_child_serves_on(pool: ChildPool) -> None:
    with pytest.raises(WorkerError, match="out_of_memory"):
        await pool.run("allocate", {"bytes": 4096 * MiB}, timeout_s=10, job="a")
    assert await pool.run("echo", {"n": 1}, timeout_s=10, job="a")
    assert pool.stats().restarts == 0


async def test_a_child_that_keeps_memory_is_replaced_and_the_memory_comes_back(pool: ChildPool) -> None:
    before = await pool.run("echo", {}, timeout_s=10, job="a")
    rss_before = pool.stats().children[0].rss_bytes
    hog = await pool.run("allocate", {"bytes": 400 * MiB, "keep": True}, timeout_s=10, job="a")
    assert hog["pid"] == before["pid"]
    after = await pool.run("echo", {}, timeout_s=10, job="a")
    assert after["pid"] != hog["pid"]
    assert pool.stats().children[0].rss_bytes < rss_before * 1.1
    assert not exists(hog["pid"])


async def test_growth_below_the_bound_or_without_a_bound_keeps_the_child() -> None:
    async with make_pool(recycle_growth_bytes=None) as pool:
        first = await pool.run("allocate", {"bytes": 400 * MiB, "keep": True}, timeout_s=10, job="a")
        assert (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"] == first["pid"]
        child = pool.stats().children[0]
        assert child.tasks == 2
        assert child.peak_rss_bytes >= child.rss_bytes > 400 * MiB


@pytest.mark.parametrize(
    ("how", "code"), [("worker_error", "pdf_damaged"), ("key", "internal"), ("not_json", "internal")]
)
async def test_exceptions_arrive_with_their_public_half_only(pool: ChildPool, how: str, code: str) -> None:
    with pytest.raises(WorkerError) as caught:
        await pool.run("fail", {"how": how}, timeout_s=10, job="a")
    assert caught.value.code == code
    assert "secret" not in caught.value.public_text
    if how == "worker_error":
        assert caught.value.public_text == ("[pdf_damaged] page 3 is damaged; a page has one tree; Repair the file.")
    assert await pool.run("echo", {"n": 1}, timeout_s=10, job="a")
    assert pool.stats().restarts == 0


async def test_an_unknown_task_is_an_error_of_ours_and_harmless(pool: ChildPool) -> None:
    with pytest.raises(WorkerError, match="internal"):
        await pool.run("no_such_task", {}, timeout_s=10, job="a")


@pytest.mark.parametrize(
    "line",
    ["not json", "[1]", "[" * 100_000, '{"id": 99, "result": {}}', '{"id": 1}', '{"id": 1, "result": [1]}'],
    ids=["text", "list", "deep", "other id", "no result", "result is a list"],
)
async def test_a_child_that_breaks_the_protocol_is_replaced(pool: ChildPool, line: str) -> None:
    with pytest.raises(WorkerError) as caught:
        await pool.run("answer_on_wire", {"line": line}, timeout_s=10, job="a")
    assert caught.value.code == "decoder_crashed"
    assert (await pool.run("echo", {"n": 1}, timeout_s=10, job="a"))["n"] == 1
    assert pool.stats().restarts == 1


async def test_an_endless_answer_is_cut_off(pool: ChildPool) -> None:
    with pytest.raises(WorkerError, match="decoder_crashed"):
        await pool.run("echo", {"text": "x" * (33 * MiB)}, timeout_s=60, job="a")
    assert await pool.run("echo", {"n": 1}, timeout_s=10, job="a")


async def test_two_hundred_parallel_runs_each_get_their_own_answer() -> None:
    async with make_pool(size=3) as pool:
        runs = [pool.run("echo", {"n": n}, timeout_s=30, job=f"job-{n % 7}") for n in range(200)]
        results = await asyncio.gather(*runs)
        assert [result["n"] for result in results] == list(range(200))
        assert len({result["pid"] for result in results}) == 3
        assert pool.stats().restarts == 0


async def test_parallel_runs_survive_crashes_among_them() -> None:
    async def one(n: int) -> object:
        try:
            if n % 20 == 7:
                return await pool.run("crash", {"how": "abort"}, timeout_s=30, job="a")
            return (await pool.run("echo", {"n": n}, timeout_s=30, job="a"))["n"]
        except WorkerError as error:
            return error.code

    async with make_pool(size=2) as pool:
        results = await asyncio.gather(*map(one, range(60)))
    assert results == [n if n % 20 != 7 else "decoder_crashed" for n in range(60)]


async def test_cancelling_a_running_task_kills_its_child_and_serves_the_next(pool: ChildPool, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    run = asyncio.create_task(pool.run("hang", {"how": "native", "started": str(started)}, timeout_s=60, job="a"))
    await eventually(lambda: started.exists() and started.read_text(encoding="ascii") != "")
    pid = int(started.read_text(encoding="ascii"))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await eventually(lambda: not exists(pid))
    assert (await pool.run("echo", {"n": 1}, timeout_s=10, job="a"))["pid"] != pid


async def test_a_task_to_be_finished_outlives_its_caller_and_its_child_serves_on(
    pool: ChildPool, tmp_path: Path
) -> None:
    started, until = tmp_path / "pid", tmp_path / "until"
    params = {"started": str(started), "until": str(until)}
    run = asyncio.create_task(pool.run("wait_for", params, timeout_s=60, job="a", finish=True))
    await eventually(lambda: started.exists() and started.read_text(encoding="ascii") != "")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert pool.stats().busy == 1
    until.touch()
    assert (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"] == int(started.read_text(encoding="ascii"))
    assert pool.stats().restarts == 0


async def test_a_task_to_be_finished_is_still_removed_while_it_waits_and_killed_when_it_hangs(
    pool: ChildPool, tmp_path: Path
) -> None:
    started, never = tmp_path / "pid", tmp_path / "never"
    params = {"started": str(started), "until": str(never)}
    hanging = asyncio.create_task(pool.run("wait_for", params, timeout_s=1, job="a", finish=True))
    log = {"path": str(tmp_path / "log"), "mark": "x"}
    waiting = asyncio.create_task(pool.run("append", log, timeout_s=10, job="a", finish=True))
    await eventually(lambda: started.exists() and pool.stats().queued == 1)
    for run in (waiting, hanging):
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert pool.stats().queued == 0
    pid = (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"]
    assert pid != int(started.read_text(encoding="ascii"))
    assert not (tmp_path / "log").exists()


async def test_cancelling_a_waiting_task_removes_it_and_leaves_the_child_alone(pool: ChildPool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"]
    first = asyncio.create_task(pool.run("echo", {}, timeout_s=10, job="a"))
    waiting = asyncio.create_task(pool.run("append", {"path": str(log), "mark": "x"}, timeout_s=10, job="a"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await first)["pid"] == pid
    assert (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"] == pid
    assert not log.exists()
    assert pool.stats().queued == 0


async def test_cancelling_everything_at_once_leaves_a_working_pool(tmp_path: Path) -> None:
    async with make_pool(size=2) as pool:
        with anyio.move_on_after(0.3):
            async with anyio.create_task_group() as group:
                for n in range(30):
                    params = {"how": "sleep", "started": str(tmp_path / str(n))}
                    group.start_soon(lambda params=params: pool.run("hang", params, timeout_s=60, job="a"))
        results = await asyncio.gather(*(pool.run("echo", {"n": n}, timeout_s=10, job="b") for n in range(4)))
        assert [result["n"] for result in results] == [0, 1, 2, 3]
        assert pool.stats().queued == 0


async def test_a_small_job_is_served_in_turn_with_a_large_one(pool: ChildPool, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def mark(job: str, n: int) -> Any:
        return pool.run("append", {"path": str(log), "mark": f"{job}{n}"}, timeout_s=10, job=job)

    await asyncio.gather(*(mark("A", n) for n in range(6)), *(mark("B", n) for n in range(3)))
    order = log.read_text(encoding="ascii").split()
    assert order == ["A0", "A1", "B0", "A2", "B1", "A3", "B2", "A4", "A5"] or order == [
        "A0", "B0", "A1", "B1", "A2", "B2", "A3", "A4", "A5",
    ]  # fmt: skip


async def test_a_child_that_never_gets_ready_is_given_up_after_the_time_that_its_pool_allows() -> None:
    pool = make_pool(config={"hang_at_start": True}, start_timeout_s=1.0)
    try:
        with pytest.raises(WorkerError, match="not ready after 1 s") as failed:
            await pool.start()
    finally:
        await pool.close()
    assert failed.value.code == "worker_not_ready"


async def test_start_reports_what_the_setup_said_and_queued_tasks_fail_with_it(tmp_path: Path) -> None:
    pool = make_pool(config={"refuse": str(tmp_path / "data")})
    with pytest.raises(WorkerError) as caught:
        await pool.start()
    assert caught.value.public_text == "[no_language_data] language data is missing; Install it."
    with pytest.raises(WorkerError, match="no_language_data"):
        await pool.run("echo", {}, timeout_s=10, job="a")
    assert pool.stats().start_error == caught.value.public_text
    (tmp_path / "data").touch()  # the operator installs it: no restart of the server is needed
    await eventually(lambda: pool.stats().ready == 1)
    assert await pool.run("echo", {"n": 1}, timeout_s=10, job="a")
    assert pool.stats().start_error is None
    await pool.close()


@pytest.mark.parametrize(("config", "named"), [("crash_at_start", "exit status 3"), ("defect_at_start", "its log")])
async def test_tasks_that_wait_for_the_first_child_fail_when_none_can_start(config: str, named: str) -> None:
    pool = make_pool(size=2, config={config: True})
    await pool.start(wait=False)
    with pytest.raises(WorkerError) as caught:
        await pool.run("echo", {}, timeout_s=10, job="a")
    assert caught.value.code == "worker_not_ready"
    assert named in caught.value.what
    await pool.close()


async def test_a_fault_at_start_causes_no_storm_of_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam2_mcp_worker.execution.pool.BACKOFF_S", (0.0, 3600.0))
    pool = make_pool(config={"crash_at_start": True})
    with pytest.raises(WorkerError, match="worker_not_ready"):
        await pool.start()
    await eventually(lambda: pool.stats().restarts == 2)
    assert pool.stats().ready == 0
    await pool.close()


async def test_an_idle_child_that_dies_is_replaced_without_a_task_noticing(pool: ChildPool) -> None:
    pid = (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"]
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: pool.stats().children[0].pid not in (pid, None) and pool.stats().ready == 1)
    assert (await pool.run("echo", {}, timeout_s=10, job="a"))["pid"] != pid


async def test_close_ends_all_children_and_fails_what_runs_and_waits(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    pool = make_pool()
    await pool.start()
    running = asyncio.create_task(pool.run("hang", {"how": "native", "started": str(started)}, timeout_s=60, job="a"))
    waiting = asyncio.create_task(pool.run("echo", {}, timeout_s=60, job="a"))
    await eventually(started.exists)
    pid = pool.stats().children[0].pid
    assert repr(pool) == "<ChildPool test [ready 1/1, busy 1, queued 1, restarts 0]>"
    await pool.close()
    await pool.close()
    for run in (running, waiting, pool.run("echo", {}, timeout_s=1, job="a")):
        with pytest.raises(WorkerError, match="worker_stopping"):
            await run
    assert pid is not None
    assert not exists(pid)


async def test_close_while_children_load_leaves_none() -> None:
    pool = make_pool(size=2)
    await pool.start(wait=False)
    await eventually(lambda: all(child.pid for child in pool.stats().children))
    pids = [child.pid for child in pool.stats().children]
    await pool.close()
    assert not any(exists(pid) for pid in pids if pid)


SERVER = """
import asyncio, sys
from sam2_mcp_worker.execution.pool import ChildPool
async def main():
    env = {"PYTHONPATH": sys.argv[1]}
    pool = ChildPool("test", "tests.fakes.child_tasks", size=2, config={}, memory_limit_bytes=0, env=env)
    await pool.start()
    print(*(child.pid for child in pool.stats().children), flush=True)
    await pool.run("hang", {"how": "native", "started": sys.argv[2]}, timeout_s=600, job="a")
asyncio.run(main())
"""


async def test_no_child_outlives_a_killed_server_not_even_one_that_hangs(tmp_path: Path) -> None:
    started = tmp_path / "started"
    server = await anyio.open_process(
        [sys.executable, "-c", SERVER, str(ROOT), str(started)], stderr=subprocess.DEVNULL, env={**os.environ, **ENV}
    )
    assert server.stdout is not None
    line = await BufferedByteReceiveStream(server.stdout).receive_until(b"\n", 1000)
    pids = [int(pid) for pid in line.split()]
    await eventually(started.exists)
    assert len(pids) == 2
    assert all(map(exists, pids))
    server.kill()
    await server.aclose()
    await eventually(lambda: not any(map(exists, pids)))
