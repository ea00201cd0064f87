"""`sam2-mcp --check` as a program, against the real worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.conftest import RunningWorker
from tests.fakes.proxy import FakeProxy

from sam2_mcp_bridge.doctor.stages import STAGES


def run_check(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SAM2_MCP_")} | environment
    command = [sys.executable, "-m", "sam2_mcp_bridge", *flags]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60)


def stages(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {stage["stage"]: stage for stage in json.loads(done.stdout)["stages"]}


def test_the_real_worker_passes_every_stage(worker: RunningWorker) -> None:
    done = run_check("--check", f"{worker.base_url}/mcp", "--json", SAM2_MCP_TOKEN=worker.token)
    assert (done.returncode, done.stderr) == (0, "")
    found = stages(done)
    expected = dict.fromkeys(STAGES, "ok") | {"tls": "skipped"}
    assert {name: stage["state"] for name, stage in found.items()} == expected
    assert found["eras"]["detail"] == "2025-11-25 by initialize, 2026-07-28 by server/discover"
    assert "get_status" in found["tools"]["detail"] and "160 x 48 px" in found["image"]["detail"]
    assert worker.token not in done.stdout


def test_without_its_token_the_worker_fails_the_check_at_http(worker: RunningWorker) -> None:
    done = run_check("--check", SAM2_MCP_URL=f"{worker.base_url}/mcp")
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed       http        [unauthorized]" in done.stdout and "SAM2_MCP_TOKEN_FILE" in done.stdout
    assert done.stdout.count("not reached") == 5


def test_by_a_name_that_the_worker_does_not_know_it_fails_at_http(worker: RunningWorker) -> None:
    port = worker.base_url.rpartition(":")[2]
    url = f"http://worker.test:{port}/mcp"
    # The worker takes the place of a proxy, so that nobody has to know the name: it sees what it is called by.
    done = run_check(f"--check={url}", "--json", "--proxy", worker.base_url, SAM2_MCP_TOKEN=worker.token)
    http = stages(done)["http"]
    assert done.returncode == 1 and "[host_not_allowed]" in http["detail"]
    assert f"add worker.test:{port} to SAM2_MCP_ALLOWED_HOSTS" in http["mend"]


def test_at_another_path_it_serves_no_mcp(worker: RunningWorker) -> None:
    done = run_check("--check", f"{worker.base_url}/elsewhere", "--json", SAM2_MCP_TOKEN=worker.token)
    assert done.returncode == 1 and "the worker's path is /mcp" in stages(done)["http"]["mend"]


def test_a_gateway_that_changes_pictures_fails_the_check_at_image(worker: RunningWorker) -> None:
    def recompress(body: bytes) -> bytes:
        return body[:-20] + bytes(20) if body.startswith(b"\x89PNG") else body

    with FakeProxy(alter=recompress) as proxy:
        flags = ["--check", f"{worker.base_url}/mcp", "--json", "--proxy", proxy.url]
        done = run_check(*flags, SAM2_MCP_TOKEN=worker.token)
    image = stages(done)["image"]
    assert done.returncode == 1 and "other bytes arrived" in image["detail"] and "gateway" in image["mend"]


def test_wrong_usage_is_told_on_stderr() -> None:
    done = run_check("--check", "--nonsense")
    assert (done.returncode, done.stdout) == (2, "") and "no such flag: --nonsense" in done.stderr
    assert "--check [URL] [--json]" in run_check("--help").stdout
