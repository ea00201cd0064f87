"""A whole worker with an engine for masks, in a network namespace where only loopback is: all tools work, nothing is
written on stdout, and nobody is called but the server by its client.

The namespace counts for itself: a look-up of a name or a connection to elsewhere, even one that fails and is caught,
shows in the kernel's counters, whichever process or library tried.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.test_server_stays_light import CALLS, Calls, every_file
from tests.models import OnnxPair

pytestmark = pytest.mark.timeout(300)

# Runs the command after it, then writes what the namespace's kernel counted as JSON on stderr.
PROGRAM = """
import fcntl, json, socket, struct, subprocess, sys
from pathlib import Path
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
done = subprocess.run(sys.argv[1:])
def counters(text):
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return {name[:-1] + "." + key: int(value) for (name, *keys), (_, *values) in zip(rows[::2], rows[1::2])
            for key, value in zip(keys, values)}
counted = counters(Path("/proc/net/snmp").read_text() + Path("/proc/net/netstat").read_text())
for line in Path("/proc/net/snmp6").read_text().splitlines():
    name, value = line.split()
    counted[name] = int(value)
print(json.dumps({"returncode": done.returncode, "counted": counted}), file=sys.stderr)
"""
# Datagrams of any kind (names are looked up by them), and whatever was sent to where no road leads.
SILENT = ("Udp.OutDatagrams", "Udp6OutDatagrams", "Ip.OutNoRoutes", "Ip6OutNoRoutes")


def sealed(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode != 0:
        pytest.skip("this system makes no network namespace for us")
    # Whatever keeps libraries silent must come from the worker itself.
    inherited = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    return subprocess.run(
        [unshare, "-rn", sys.executable, "-c", PROGRAM, *command],
        capture_output=True,
        encoding="utf-8",
        timeout=250,
        env=inherited | {"PYTHONIOENCODING": "utf-8"} | environment,
    )


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    told = json.loads(done.stderr.strip().splitlines()[-1])
    assert told["returncode"] == 0, done.stderr[-2000:]
    counted: dict[str, int] = told["counted"]
    return {name: counted[name] for name in SILENT}


# All tools on a server of its own, which then stays: ONNX Runtime's reports begin 9 s after its import.
LIVE = """
import asyncio, json, os, sys
from pathlib import Path
from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.cli.server import running_worker
from sam2_mcp_worker.settings import Settings

async def main(folder, calls):
    async with running_worker(Settings(port=0)) as url:
        client = WorkerClient(url, None)
        for tool, arguments in calls:
            if "source" in arguments:
                arguments["source"] = await client.upload(folder / arguments["source"])
            if "evidence" in arguments:
                arguments["evidence"] = [await client.upload(folder / name) for name in arguments["evidence"]]
            async with client.session() as session:
                result = await session.call_tool(tool, arguments)
            assert not result.is_error, first_text(result)
            if tool == "transcribe_audio" and os.environ["SAM2_MCP_SPEECH"] == "whisper":
                assert "local Whisper" in first_text(result), first_text(result)
        await asyncio.sleep(12)

asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
"""


# The tools that ask providers, with keys, a Messages API and a speech endpoint on loopback.
KEYED = """
import asyncio, json, sys
from pathlib import Path
from tests.fakes.claude_pages import make_page
from tests.fakes.claude_server import claude_server
from tests.fakes.speech_server import speech_server
from tests.fakes.speech_sounds import said, write_sound
from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.cli.server import running_worker
from sam2_mcp_worker.settings import Settings

async def main(folder, fake, ears, page):
    providers = fake.settings() | ears.settings()
    settings = Settings(port=0, data_dir=folder / "data", ocr_processes=1, segmenter="off", **providers)
    page, sound = page.write(folder), write_sound(folder / "a.wav", said("yes"))
    calls = (("read_text", {}, page, "claude-"), ("inspect_image", {"labels": ["coin"]}, page, "claude-"),
             ("transcribe_audio", {}, sound, "whisper-1"), ("get_status", {}, None, "claude-"))
    async with running_worker(settings) as url:
        client = WorkerClient(url, None)
        for tool, arguments, source, who in calls:
            if source is not None:
                arguments["source"] = await client.upload(source)
            async with client.session() as session:
                result = await session.call_tool(tool, arguments)
            assert not result.is_error, first_text(result)
            assert who in first_text(result), first_text(result)

page = make_page("banner", 300, 200)
with claude_server([page]) as fake, speech_server() as ears:
    asyncio.run(main(Path(sys.argv[1]), fake, ears, page))
    assert len(fake.requests) == 2, fake.requests
    assert len(ears.requests) == 1, ears.requests
"""


def check_silent(folder: Path, calls: Calls, environment: dict[str, str]) -> None:
    every_file(folder)
    environment = environment | {"SAM2_MCP_DATA_DIR": str(folder / "data"), "SAM2_MCP_OCR_PROCESSES": "1"}
    done = sealed([sys.executable, "-c", LIVE, str(folder), json.dumps(calls)], environment)
    assert counts(done) == dict.fromkeys(SILENT, 0)
    assert done.stdout == ""


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[None]]:
    """The worker with SAM 2, watched beside the other one: each in a namespace of its own, most of it is waiting."""
    from tests.e2e.sam2_worker import environment

    folder = tmp_path_factory.mktemp("sam2")
    track = ("track_video", {"source": "shapes.mp4", "boxes": [[30, 60, 95, 120]], "quality": "fast"})
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(check_silent, folder, [*CALLS, track], environment(folder / "data"))


def test_a_worker_with_the_onnx_pair_and_whisper_calls_nobody(
    beside: Future[None], tmp_path: Path, onnx_pair: OnnxPair
) -> None:
    check_silent(tmp_path, CALLS, onnx_pair.environment() | {"SAM2_MCP_SPEECH": "whisper"})


def test_a_worker_with_sam_2_calls_nobody(beside: Future[None]) -> None:
    beside.result()


def test_with_keys_only_the_addresses_of_the_providers_are_called(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    done = sealed([sys.executable, "-c", KEYED, str(tmp_path)], {"PYTHONPATH": root})
    assert counts(done) == dict.fromkeys(SILENT, 0)
    assert done.stdout == ""


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; socket.create_connection(('192.0.2.1', 443))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
        "import socket; socket.create_connection(('2001:db8::1', 443))",
    ],
)
def test_a_caught_attempt_to_call_out_is_counted(attempt: str) -> None:
    program = f"try:\n    {attempt}\nexcept OSError:\n    pass"
    assert sum(counts(sealed([sys.executable, "-c", program], {})).values()) >= 1
