"""The table of sessions and the one router for all of them. Refuses to know about HTTP."""

import asyncio
import contextlib
import logging
import socket
import uuid
from datetime import UTC, datetime

from .contract import (
    NO_RESPONSE,
    McpAnswer,
    McpRequest,
    SessionInfo,
    SessionRequest,
    Timings,
    process_not_running,
    session_not_found,
)
from .process import ServerProcess

logger = logging.getLogger(__name__)


class Session:
    def __init__(self, request: SessionRequest, timings: Timings) -> None:
        self.session_id = str(uuid.uuid4())
        self.created_at = datetime.now(UTC).isoformat()
        self.request = request
        self.process = ServerProcess(request, timings)

    def info(self) -> SessionInfo:
        return SessionInfo(
            session_id=self.session_id,
            session_name=self.request.session_name,
            server_type=self.request.server_type,
            status="running" if self.process.is_running else "stopped",
            created_at=self.created_at,
            pid=self.process.pid,
            error_message=None,
            server_command=self.request.server_command,
            server_args=self.request.server_args,
            additional_commands=self.request.additional_commands,
            mcp_initialized=self.process.initialized,
            pod_name=socket.gethostname(),
            pod_ip="127.0.0.1",
        )


class Sessions:
    """Every session of this station, and the request counter that they share."""

    def __init__(self, timings: Timings | None = None) -> None:
        self._timings = timings or Timings()
        self._sessions: dict[str, Session] = {}
        # For all sessions, and it starts at 1 like the counter of each process: within a session id 1 can come twice.
        self._next_id = 1

    async def create(self, request: SessionRequest) -> SessionInfo:
        """Raises OSError when the process cannot be forked."""
        session = Session(request, self._timings)
        await session.process.start()
        self._sessions[session.session_id] = session
        names = sorted(request.env_vars)
        logger.info("session %s, pid %s, env_vars %s", session.session_id, session.process.pid, names)
        return session.info()

    def list_running(self) -> list[SessionInfo]:
        """First forgets every session whose process has exited; that is how "Session not found" comes about."""
        self._sessions = {key: each for key, each in self._sessions.items() if each.process.is_running}
        return [each.info() for each in self._sessions.values()]

    def get(self, session_id: str) -> SessionInfo | None:
        session = self._sessions.get(session_id)
        return session.info() if session else None

    async def delete(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        if session:
            await session.process.stop()
        return session is not None

    async def close(self) -> None:
        """Stops every process within the shutdown budget."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timings.shutdown_s):
                await asyncio.gather(*[self.delete(each) for each in list(self._sessions)])

    async def route(self, request: McpRequest) -> McpAnswer:
        """Never raises: what goes wrong is said in `error`."""
        session = self._sessions.get(request.session_id)
        if session is None:
            return McpAnswer(success=False, error=session_not_found(request.session_id))
        if not session.process.is_running:
            return McpAnswer(success=False, error=process_not_running(request.session_id))
        try:
            return await self._ask(session.process, request)
        except Exception as error:
            return McpAnswer(success=False, error=f"Internal error: {error}")

    async def _ask(self, process: ServerProcess, request: McpRequest) -> McpAnswer:
        await process.wait_until_initialized()
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": request.method, "params": request.params or {}}
        self._next_id += 1
        answer = await process.exchange(message)
        if answer is None:
            return McpAnswer(success=False, error=NO_RESPONSE)
        # A line that is neither an answer nor an error passes as a success without data: the caller reads "None".
        if failure := answer.get("error"):
            return McpAnswer(success=False, data=failure, error=failure.get("message"))
        return McpAnswer(success=True, data=answer.get("result"))
