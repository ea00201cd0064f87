"""What docker-compose.yml, the Dockerfiles and the systemd unit promise, read from the files themselves."""

import configparser
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILES = sorted((ROOT / "deploy").glob("Dockerfile.*"))
SERVICES = ["worker", "station"]

# The longest call, in seconds: what is stopped may finish one.
CALL_LIMIT_S = 30


def service(name: str) -> dict[str, Any]:
    services: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    assert sorted(services) == sorted(SERVICES)
    return services[name]


def instructions(dockerfile: Path) -> list[str]:
    """One instruction each, continued lines joined, without comments."""
    lines = [line for line in dockerfile.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    return [each.strip() for each in "\n".join(lines).replace("\\\n", " ").splitlines() if each.strip()]


def test_the_compose_file_keeps_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.suffix)
def test_a_dockerfile_passes_the_linter(dockerfile: Path) -> None:
    command = [str(Path(sys.executable).with_name("hadolint")), "--failure-threshold", "style", str(dockerfile)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_station_has_512_mb_and_no_swap() -> None:
    station = service("station")
    assert station["mem_limit"] == station["memswap_limit"] == "512m"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_confined(name: str) -> None:
    settings = service(name)
    assert settings["read_only"] is True and settings["init"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert settings["user"] == "10001:10001"
    assert settings["mem_limit"] == settings["memswap_limit"]
    assert settings["pids_limit"] > 0
    assert int(settings["stop_grace_period"].removesuffix("s")) > CALL_LIMIT_S


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service(name)["ports"])


@pytest.mark.parametrize("name", SERVICES)
def test_the_token_is_demanded_and_no_secret_is_written_down(name: str) -> None:
    environment = service(name)["environment"]
    assert environment["SAM2_MCP_TOKEN"].startswith("${SAM2_MCP_TOKEN:?")
    secrets = [value for key, value in environment.items() if key.endswith(("_TOKEN", "_KEY"))]
    assert all(value.startswith("${") for value in secrets)


def test_the_station_reaches_the_worker_under_a_host_name_that_the_worker_allows() -> None:
    worker, station = service("worker"), service("station")
    url = station["environment"]["SAM2_MCP_URL"]
    host = url.removeprefix("http://").removesuffix("/mcp")
    assert host in worker["environment"]["SAM2_MCP_ALLOWED_HOSTS"].split(",")
    assert station["depends_on"] == {"worker": {"condition": "service_healthy"}}
    assert worker["environment"]["SAM2_MCP_DATA_DIR"] == worker["volumes"][0].partition(":")[2]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.suffix)
def test_an_image_is_numeric_non_root_and_handles_signals(dockerfile: Path) -> None:
    lines = instructions(dockerfile)
    assert lines[0] == "ARG BASE_IMAGE=python:3.12-slim-bookworm"
    assert all("${BASE_IMAGE}" in line for line in lines if line.startswith("FROM "))
    assert "USER 10001:10001" in lines and "STOPSIGNAL SIGTERM" in lines
    assert any("PYTHONUNBUFFERED=1" in line for line in lines)
    commands = [line.partition(" ")[2] for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]
    assert len(commands) == 2 and all(each.startswith("[") for each in commands)


@pytest.mark.parametrize("name", SERVICES)
def test_image_and_compose_check_health_in_the_same_way(name: str) -> None:
    checks = [line for line in instructions(ROOT / "deploy" / f"Dockerfile.{name}") if line.startswith("HEALTHCHECK")]
    command = ", ".join(f'"{part}"' for part in service(name)["healthcheck"]["test"][1:])
    assert len(checks) == 1 and checks[0].endswith(f"CMD [{command}]")


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.suffix)
def test_everything_that_an_image_copies_exists_and_passes_the_allow_list(dockerfile: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    copies = [
        line.split()[1:-1] for line in instructions(dockerfile) if line.startswith("COPY ") and "--from" not in line
    ]
    sources = [source for copy in copies for source in copy]
    assert "*" in ignored and sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [source for source in sources if source.split("/")[0] not in allowed] == []


def test_the_unit_runs_as_a_nobody_on_loopback_with_its_token_in_a_file() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    text = (ROOT / "deploy" / "sam2-mcp-worker.service").read_text(encoding="utf-8")
    unit.read_string(text)
    settings = unit["Service"]
    assert "--host 127.0.0.1" in settings["ExecStart"]
    assert settings["DynamicUser"] == settings["NoNewPrivileges"] == "yes"
    assert settings["ProtectSystem"] == "strict"
    assert int(settings["TimeoutStopSec"]) > CALL_LIMIT_S
    assert "Environment=SAM2_MCP_TOKEN_FILE=%d/token" in text.splitlines()


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def healthcheck(port: int, path: str) -> int:
    command = ["bash", str(ROOT / "deploy" / "healthcheck.sh"), str(port), path]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode


def test_the_health_check_fails_on_anything_but_200() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Health) as server:
        Thread(target=server.serve_forever).start()
        try:
            assert healthcheck(server.server_port, "/readyz") == 0
            assert healthcheck(server.server_port, "/busy") == 1
        finally:
            server.shutdown()
    assert healthcheck(server.server_port, "/readyz") == 1
