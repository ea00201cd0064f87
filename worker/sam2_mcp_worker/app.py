"""The FastAPI application: MCP at /mcp, uploads, artifacts and health beside it, one guard in front of all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings

from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import LOOPBACK_HOSTS, Settings
from sam2_mcp_worker.tools.server import build_tool_server
from sam2_mcp_worker.version import worker_version
from sam2_mcp_worker.web.guard import Guard
from sam2_mcp_worker.web.routes import build_routes


def allowed_hosts(settings: Settings) -> list[str]:
    """Host header values that are let in: loopback names with any port, plus those of the setting."""
    bracketed = [f"[{host}]" if ":" in host else host for host in LOOPBACK_HOSTS]
    return [*bracketed, *(f"{host}:*" for host in bracketed), *(host.lower() for host in settings.allowed_hosts)]


def allowed_origins(settings: Settings) -> list[str]:
    """Origin header values that are let in: pages of this very machine, plus those of the setting."""
    local = [f"http://{host}" for host in allowed_hosts(settings) if host.startswith(("127.", "localhost"))]
    return [*local, *(origin.lower().rstrip("/") for origin in settings.allowed_origins)]


def create_app(settings: Settings, services: Services | None = None) -> FastAPI:
    """Build the application. Its children start with its lifespan and end with it.

    Raises:
        WorkerError: the settings name a token file that cannot be read.
    """
    services = services or Services(settings)
    server = build_tool_server(services)
    hosts, origins = allowed_hosts(settings), allowed_origins(settings)
    # Stateless with SSE answers: the only mode in which a client that goes away cancels its call in both protocol
    # eras (reference/mcp.md 1.5), and there is no session that a restart could lose.
    mcp_app = server.streamable_http_app(
        streamable_http_path="/mcp",
        stateless_http=True,
        json_response=False,
        max_request_body_size=settings.max_request_bytes,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await services.start()
        try:
            async with server.session_manager.run():
                yield
        finally:
            await services.close()

    app = FastAPI(
        title="sam2-mcp worker",
        version=worker_version(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.services = services
    app.state.tool_server = server
    app.include_router(build_routes(services))
    app.router.routes.extend(mcp_app.routes)
    app.add_middleware(Guard, allowed_hosts=hosts, allowed_origins=origins, token=settings.read_token())
    return app
