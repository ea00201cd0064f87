"""The station's wire shapes, numbers and fixed texts. Knows no process and no server."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

# One stdout or stderr line may have this many bytes; a longer one ends the reader of that stream for good.
LINE_LIMIT_BYTES = 16 * 1024 * 1024

# Every child is greeted with exactly this, roots and sampling included, although the station serves neither.
INITIALIZE_PARAMS: dict[str, Any] = {
    "protocolVersion": "2024-11-05",
    "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
    "clientInfo": {"name": "mcp-station", "version": "1.0.0"},
}

NO_RESPONSE = "No response from MCP server (timeout or error)"


def session_not_found(session_id: str) -> str:
    return f"Session not found: {session_id}"


def process_not_running(session_id: str) -> str:
    return f"Session process is not running: {session_id}"


@dataclass(frozen=True)
class Timings:
    """The public station's figures, in seconds. Tests shorten them; nothing else may."""

    # From the write of a request to the arrival of a line.
    request_s: float = 30.0
    # For the child's answer to initialize, and again for every request that finds the session not initialized.
    init_s: float = 60.0
    init_poll_s: float = 0.5
    # SIGTERM to the process group, this wait, SIGKILL, the second wait.
    terminate_s: float = 3.0
    kill_s: float = 2.0
    # All sessions together, when the station itself stops.
    shutdown_s: float = 10.0
    # `additional_commands` run this long after the start, and for so long each at most.
    additional_delay_s: float = 2.0
    additional_command_s: float = 300.0


class SessionRequest(BaseModel):
    server_type: Literal["python", "node"]
    server_command: str
    server_args: list[str] = Field(default_factory=list)
    env_vars: dict[str, str] = Field(default_factory=dict)
    working_dir: str | None = None
    session_name: str | None = None
    additional_commands: list[str] = Field(default_factory=list)


class SessionInfo(BaseModel):
    session_id: str
    session_name: str | None
    server_type: str
    status: str
    created_at: str
    pid: int | None
    error_message: str | None
    server_command: str
    server_args: list[str]
    additional_commands: list[str]
    mcp_initialized: bool
    pod_name: str
    pod_ip: str


class McpRequest(BaseModel):
    session_id: str
    method: str
    params: dict[str, Any] | None = None


class McpAnswer(BaseModel):
    success: bool
    data: Any = None
    error: str | None = None
