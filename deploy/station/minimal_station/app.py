"""The HTTP face of the station. Knows routes and status codes, nothing of processes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from .contract import McpAnswer, McpRequest, SessionInfo, SessionRequest, Timings, session_not_found
from .sessions import Sessions

# Whoever reaches the station can start any command, so a web page that rebinds its name to 127.0.0.1 is turned away.
LOCAL_HOSTS = ("127.0.0.1", "localhost")


def create_app(timings: Timings | None = None, allowed_hosts: Sequence[str] = LOCAL_HOSTS) -> FastAPI:
    sessions = Sessions(timings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await sessions.close()

    app = FastAPI(title="minimal MCP station", lifespan=lifespan)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))
    for router in (_session_routes(sessions), _call_routes(sessions)):
        app.include_router(router, prefix="/api/mcp")

    @app.get("/")
    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "healthy", "service": "mcp-station"}

    return app


def _session_routes(sessions: Sessions) -> APIRouter:
    router = APIRouter()

    @router.post("/sessions", status_code=201)
    async def create_session(request: SessionRequest) -> SessionInfo:
        try:
            return await sessions.create(request)
        except OSError as error:
            raise HTTPException(500, str(error)) from error

    @router.get("/sessions")
    async def list_sessions() -> list[SessionInfo]:
        return sessions.list_running()

    @router.get("/sessions/{session_id}")
    async def get_session(session_id: str) -> SessionInfo:
        if info := sessions.get(session_id):
            return info
        raise HTTPException(404, session_not_found(session_id))

    @router.delete("/sessions/{session_id}", status_code=204)
    async def delete_session(session_id: str) -> None:
        if not await sessions.delete(session_id):
            raise HTTPException(404, session_not_found(session_id))

    return router


def _call_routes(sessions: Sessions) -> APIRouter:
    router = APIRouter()

    @router.get("/sessions/{session_id}/tools")
    async def list_tools(session_id: str) -> object:
        answer = await sessions.route(McpRequest(session_id=session_id, method="tools/list", params={}))
        if not answer.success:
            raise HTTPException(500, answer.error)
        return answer.data

    @router.post("/mcp-request")
    async def mcp_request(request: McpRequest) -> McpAnswer:
        return await sessions.route(request)

    return router
