"""A real Docker engine: the one that runs, or one that is installed and started here and stopped again.

Owns the command lines of docker and Compose; knows no image and no test. Everything that a project needs is fetched by
the ordinary package client, so that a machine which has never seen the project can run the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# What is needed, by the package that brings it.
PACKAGES = {
    "dockerd": "docker.io",
    "docker-compose": "docker-compose",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
}
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0

# BuildKit is not part of Debian's engine.
ENVIRONMENT = {"DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0", "DEBIAN_FRONTEND": "noninteractive"}


class Unavailable(Exception):
    """There is no engine here and none can be started; the text says why."""


class CommandFailed(AssertionError):
    """A command ended with something else than 0."""


def run(*command: str, env: Mapping[str, str] | None = None, input_text: str | None = None) -> str:
    """The command's stdout.

    Raises:
        CommandFailed: with the end of what it said.
    """
    done = subprocess.run(
        command,
        env={**os.environ, **ENVIRONMENT, **(env or {})},
        input=input_text,
        stdin=subprocess.DEVNULL if input_text is None else None,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-4000:]
        raise CommandFailed(f"{' '.join(command)[:300]} ended with {done.returncode}:\n{said}")
    return done.stdout


def docker(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    return run("docker", *arguments, env=env).strip()


def compose_command() -> Sequence[str]:
    """Compose as a plugin of docker, or the program of its own that Debian has."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ("docker", "compose") if plugin.returncode == 0 else ("docker-compose",)


@contextmanager
def running_engine(log_path: Path) -> Iterator[None]:
    """An engine for the length of the block.

    Raises:
        Unavailable: it is neither there nor to be had.
    """
    _install()
    if _answers():
        yield
        return
    if os.geteuid() != 0:
        raise Unavailable("no Docker engine answers, and only root can start one")
    # A session of its own: Ctrl-C is for the tests, which then stop the engine in order.
    with log_path.open("ab") as log:
        daemon = subprocess.Popen(["dockerd"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_until_it_answers(daemon, log_path)
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _answers() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def _install() -> None:
    """What is missing; an engine that answers, from wherever, is taken as it is."""
    needed = set(PACKAGES) - ({"dockerd", "iptables"} if _answers() else set())
    if shutil.which("docker") and len(compose_command()) == 2:
        needed.remove("docker-compose")
    missing = sorted(PACKAGES[name] for name in needed if shutil.which(name) is None)
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"not installed: {', '.join(missing)}")
    try:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
    except CommandFailed as error:
        raise Unavailable(str(error)) from error


def _wait_until_it_answers(daemon: subprocess.Popen[bytes], log_path: Path) -> None:
    deadline_s = time.monotonic() + START_LIMIT_S
    while not _answers():
        if daemon.poll() is not None or time.monotonic() > deadline_s:
            said = log_path.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise Unavailable(f"dockerd did not start:\n{said}")
        time.sleep(0.2)
