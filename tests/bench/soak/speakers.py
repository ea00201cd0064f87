"""Two ways to a bridge: its own pipes, and the minimal station with the loader's side of it."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any, Protocol

import httpx
from deploy.station import loader
from tests.e2e.faults.case import FAILURE
from tests.e2e.faults.host_lines import HostCase
from tests.e2e.faults.session import Session, result_of
from tests.e2e.rehearsal.processes import Program, station_program

_tags = itertools.count(1)

# How a tools/call is put: its arguments, of which `tag` is set here.
Arguments = dict[str, Any]


def next_tag() -> str:
    return f"soak-{next(_tags)}"


class Speaker(Protocol):
    """One session; not for several threads."""

    pid: int

    def calls(self, *arguments: Arguments) -> list[tuple[str, dict[str, Any]]]:
        """These calls at the same time; the tag and the result of each."""

    def close(self) -> str:
        """End the session; what went wrong in the end, nothing if nothing did."""


class Pipes:
    """The bridge as a child of this process."""

    def __init__(self, url: str, profile: str, deadline_s: float) -> None:
        self.host = Session(url, profile, deadline_s)
        self.host.begin()
        self.pid = self.host.process.pid
        self._ids = itertools.count(10**6)

    def calls(self, *arguments: Arguments) -> list[tuple[str, dict[str, Any]]]:
        sent = []
        for each in arguments:
            tag, id_value = next_tag(), next(self._ids)
            self.host.send("tools/call", {"name": "soak", "arguments": each | {"tag": tag}}, id=id_value)
            sent.append((tag, id_value))
        return [(tag, result_of(self.host.take(id_value), "soak")) for tag, id_value in sent]

    def cancelled_call(self) -> None:
        """A call that hangs is given up by the host: no line may come for it."""
        id_value = f"cancelled-{next(self._ids)}"
        self.host.send("tools/call", {"name": "soak", "arguments": {"case": "hang", "tag": next_tag()}}, id=id_value)
        self.host.send("notifications/cancelled", {"requestId": id_value})

    def lines(self, case: HostCase) -> list[str]:
        """Lines that no host should send; what is wrong with what comes back."""
        self.host.write(case.written)
        answers = [self.host.answer() for _ in case.lines]
        if self.host.profile == "station":
            return [
                f"{case.name}: {answer}"
                for answer, line in zip(answers, case.lines, strict=True)
                if not line.fits(answer)
            ]
        return [f"{case.name}: {answers}" for line in case.lines if not any(map(line.fits, answers))]

    def is_quiet(self) -> bool:
        return self.host.quiet()

    def close(self) -> str:
        rest = self.host.end()
        code = self.host.exit_code()
        stderr_lines = len(self.host.stderr.splitlines())
        return (
            ""
            if code == 0 and not rest and stderr_lines < 40
            else f"exit {code}, {rest[:3]}, {stderr_lines} lines of stderr"
        )


class Station:
    """The minimal station as a process of its own, and sessions in it."""

    def __init__(self, log_path: Path) -> None:
        self._runner = asyncio.Runner()
        self._program: Program = station_program(log_path)
        self._program.start()
        self._runner.run(self._program.wait_until_it_listens())

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._program.port}"

    def stop(self) -> None:
        import signal

        self._runner.run(self._program.end(signal.SIGTERM))
        self._runner.close()


class StationSession:
    """What an agent has of a session: the text of each call, and nothing else."""

    def __init__(self, station: Station, url: str, profile: str, deadline_s: float) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(base_url=station.base_url, timeout=30, trust_env=False)
        env_vars = {"SAM2_MCP_URL": url, "SAM2_MCP_DEADLINE_S": str(deadline_s), "SAM2_MCP_PROFILE": profile}
        env_vars |= {"PYTHONPATH": path} if (path := os.environ.get("PYTHONPATH")) else {}
        body = {
            "server_type": "python",
            "server_command": "-m",
            "server_args": ["sam2_mcp_bridge"],
            "env_vars": env_vars,
        }
        session = self._runner.run(self._client.post("/api/mcp/sessions", json=body)).raise_for_status().json()
        self._id, self.pid = session["session_id"], session["pid"]

    def calls(self, *arguments: Arguments) -> list[tuple[str, dict[str, Any]]]:
        return self._runner.run(self._together(arguments))

    async def _together(self, arguments: tuple[Arguments, ...]) -> list[tuple[str, dict[str, Any]]]:
        tags = [next_tag() for _ in arguments]
        asked = [
            loader.call_tool(self._client, self._id, "soak", each | {"tag": tag})
            for tag, each in zip(tags, arguments, strict=True)
        ]
        texts = await asyncio.gather(*asked)
        return [
            (tag, {"content": [{"type": "text", "text": text}], "isError": FAILURE.match(text) is not None})
            for tag, text in zip(tags, texts, strict=True)
        ]

    def close(self) -> str:
        listed = self._runner.run(self._client.get("/api/mcp/sessions")).json()
        alive = any(each["session_id"] == self._id and each["pid"] == self.pid for each in listed)
        status = self._runner.run(self._client.delete(f"/api/mcp/sessions/{self._id}")).status_code
        self._runner.run(self._client.aclose())
        self._runner.close()
        return "" if alive and status == 204 else f"alive {alive}, DELETE {status}"
