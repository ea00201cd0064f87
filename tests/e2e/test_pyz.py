"""The bridge as one file: the same bytes wherever it is built, and started as the station starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from deploy.pyz.build import build
from tests.fakes.upstream import FakeUpstream
from tests.unit.station.harness import SHORT, running_station

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dist") / "sam2-mcp-bridge.pyz"
    build(path)
    return path


def test_another_checkout_with_other_times_and_modes_gives_the_same_bytes(pyz: Path, tmp_path: Path) -> None:
    other = tmp_path / "other checkout"
    for name in ("bridge/sam2_mcp_bridge", "deploy/pyz"):
        shutil.copytree(
            ROOT / name, other / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy
        )
    shutil.copy(ROOT / "LICENSE", other)
    for number, path in enumerate(sorted(other.rglob("*.py"))):
        os.utime(path, (number * 1e6, number * 1e6))
        path.chmod(0o600)
    # What a run leaves behind is no part of it.
    (other / "bridge/sam2_mcp_bridge/__pycache__").mkdir()
    (other / "bridge/sam2_mcp_bridge/__pycache__/app.cpython-311.pyc").write_bytes(b"stale")
    command = [sys.executable, str(other / "deploy/pyz/build.py"), str(tmp_path / "again.pyz")]
    environment = {"PATH": os.environ["PATH"], "TZ": "Asia/Seoul", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=environment, umask=0o077)
    assert (tmp_path / "again.pyz").read_bytes() == pyz.read_bytes()


def test_it_holds_the_whole_bridge_and_nothing_of_the_machine(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        names = archive.namelist()
    sources = ROOT / "bridge"
    modules = {path.relative_to(sources).as_posix() for path in (sources / "sam2_mcp_bridge").rglob("*.py")}
    assert modules | {"__main__.py", "LICENSE"} == set(names)
    assert names == sorted(names)
    assert str(ROOT).encode() not in pyz.read_bytes()


async def test_a_station_starts_it_as_its_server_command(pyz: Path, tmp_path: Path) -> None:
    with FakeUpstream() as fake:
        async with running_station(SHORT) as station:
            session = await station.start(command=str(pyz), env_vars={"SAM2_MCP_URL": fake.url, "PYTHONPATH": ""})
            assert await station.call(session, tag="A") == '{"name": "any", "arguments": {"tag": "A"}}'
            tools = await station.http.get(f"/api/mcp/sessions/{session}/tools")
            assert [tool["name"] for tool in tools.json()["tools"]] == ["echo"]
            info = await station.info(session)
            command = Path(f"/proc/{info['pid']}/cmdline").read_bytes().split(b"\0")
            assert command[1:-1] == [b"-u", str(pyz).encode()]


def test_without_httpx_it_ends_with_3_and_says_so(pyz: Path) -> None:
    # -I -S: the standard library and nothing that was installed.
    command = [sys.executable, "-I", "-S", "-u", str(pyz)]
    done = subprocess.run(command, input="", capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("sam2-mcp: httpx cannot be imported")
    assert done.stderr.rstrip().endswith("pip install httpx")


def test_it_tells_its_version(pyz: Path) -> None:
    done = subprocess.run([sys.executable, str(pyz), "--version"], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.startswith("sam2-mcp ")
