"""What only the real process can show: start, end, signals, memory limit, imports and the two standard streams."""

import json
import os
import resource
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
import trustme
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import PATIENCE_S, STATION_INITIALIZE, program_host

import sam2_mcp_bridge

BRIDGE = [sys.executable, "-u", "-m", "sam2_mcp_bridge"]
ALLOWED_IMPORTS = {
    "sam2_mcp_bridge",
    "httpx",
    "httpcore",
    "h11",
    "anyio",
    "idna",
    "certifi",
    "sniffio",
    "typing_extensions",
}


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


def run(*flags: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SAM2_MCP_")} | environment
    return subprocess.run([*BRIDGE, *flags], input=stdin, capture_output=True, env=env, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_bridge_with_0_in_the_middle_of_a_call(upstream: FakeUpstream, stop: signal.Signals) -> None:
    upstream.on["initialize"] = fakes.initialize("session")
    upstream.on["tools/call"] = fakes.hang()
    with program_host(upstream.url) as host:
        host.initialize()
        host.send("tools/call", {"name": "slow"}, id=2)
        (call,) = upstream.wait_for("tools/call")
        host.process.send_signal(stop)
        assert host.process.wait(3) == 0  # the station kills after 3 s
        assert call.cut.wait(10)
        assert upstream.wait_for("DELETE")[0].headers["mcp-session-id"] == "session"
        assert host.end() == [] and host.exit_code() == 0 and host.stderr == b""


def test_a_worker_that_hangs_does_not_hold_up_the_end(upstream: FakeUpstream) -> None:
    upstream.on["initialize"] = fakes.initialize("session")
    upstream.on["DELETE"] = fakes.hang(with_head=False)
    with program_host(upstream.url) as host:
        host.initialize()
        upstream.wait_for("notifications/initialized")
        host.close_stdin()
        assert host.process.wait(3) == 0


def test_a_host_that_no_longer_reads_ends_the_bridge_quietly(upstream: FakeUpstream) -> None:
    process = subprocess.Popen(
        BRIDGE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"SAM2_MCP_URL": upstream.url},
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(json.dumps(STATION_INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_stray_prints_and_children_cannot_reach_stdout(upstream: FakeUpstream, tmp_path: Path) -> None:
    # A module that is imported late (for https) and does everything wrong: prints, a child that prints and reads stdin.
    noisy = (
        "import os, subprocess, sys\n"
        "print('stray print')\n"
        "os.write(1, b'stray write\\n')\n"
        "subprocess.run([sys.executable, '-c', 'import sys; print(\"child read\", repr(sys.stdin.read()))'])\n"
    )
    noisy += f"def where(): return {certifi.where()!r}\n"
    (tmp_path / "certifi.py").write_text(noisy, encoding="utf-8")
    address = upstream.url.replace("http:", "https:")
    done = run(stdin=json.dumps(STATION_INITIALIZE).encode() + b"\n", PYTHONPATH=str(tmp_path), SAM2_MCP_URL=address)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["id"] == 1
    assert all(words in done.stderr for words in (b"stray print", b"stray write", b"child read ''\n"))


def test_the_token_appears_nowhere_but_in_the_request(upstream: FakeUpstream, tmp_path: Path) -> None:
    token = "t0p-s3cret"
    (tmp_path / "token").write_text(token + "\n", encoding="utf-8")
    upstream.on["tools/call"] = fakes.raw(401, "text/plain", b"no")
    with program_host(upstream.url, "--token-file", str(tmp_path / "token")) as host:
        host.initialize()
        assert token not in host.failing_call()
        host.end()
        assert host.exit_code() == 0 and token.encode() not in host.stderr
    assert upstream.received("tools/call")[0].headers["authorization"] == f"Bearer {token}"


def test_stderr_has_one_short_line_for_each_kind_of_failure_and_none_for_calls(upstream: FakeUpstream) -> None:
    with program_host(upstream.url) as host:
        host.initialize()
        for _ in range(20):
            host.call()
        upstream.on["tools/call"] = fakes.raw(500, "text/plain", b"")
        for _ in range(20):
            host.failing_call()
        host.end()
        host.exit_code()
    (line,) = host.stderr.splitlines()
    assert line.startswith(b"sam2-mcp: [worker_error] ") and len(line) <= 520


def test_the_verifiers_resource_limits_are_enough(upstream: FakeUpstream) -> None:
    # The registry's gate starts a server under these limits (reference: mcp.md 3).
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (512 * 2**20, 512 * 2**20))
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        resource.setrlimit(resource.RLIMIT_CPU, (5, 5))

    upstream.on["tools/call"] = fakes.text("x" * 7_000_000)
    process = subprocess.Popen(
        BRIDGE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"SAM2_MCP_URL": upstream.url},
        preexec_fn=limit,
    )
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "big"}}
    assert process.stdin and process.stdout
    for message in (STATION_INITIALIZE, call):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    assert len(process.stdout.readline()) > 7_000_000
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    process.stdout.close()


def test_https_is_verified_against_the_usual_authorities(tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with FakeUpstream(tls=tls) as upstream, program_host(upstream.url) as host:
        host.initialize()
        assert "[certificate]" in host.failing_call()
        assert upstream.received("tools/call") == []


def test_every_module_together_imports_the_standard_library_and_httpx_only() -> None:
    package = Path(sam2_mcp_bridge.__file__).parent
    paths = [path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py")]
    names = [".".join(path.parts) for path in paths]
    assert len(names) > 30
    code = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "import httpx; httpx.Client()\n"
        "print(*sorted({name.partition('.')[0] for name, module in sys.modules.items() if module is not None}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True, encoding="utf-8")
    loaded = set(done.stdout.split()) - sys.stdlib_module_names - {"__main__"}
    # What site-packages puts into every interpreter by .pth files is there without us.
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert loaded - {name.partition(".")[0] for name in bare.stdout.split()} <= ALLOWED_IMPORTS


def test_version_usage_and_settings_have_their_exit_codes() -> None:
    version = run("--version")
    assert (version.returncode, version.stdout) == (0, f"sam2-mcp {sam2_mcp_bridge.__version__}\n".encode())
    wrong = run(SAM2_MCP_PROFILE="fast")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr == b"sam2-mcp: SAM2_MCP_PROFILE: 'fast' is none of station, full, auto\n"
    assert run("--nonsense").returncode == 2
    assert run("--token-file", "/nowhere").returncode == 3


def test_without_httpx_the_bridge_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise ImportError('No module named httpx')\n", encoding="utf-8")
    done = run(PYTHONPATH=str(tmp_path))
    assert done.returncode == 3 and b"pip install httpx" in done.stderr and done.stdout == b""
