"""A uvicorn server for the application, in the foreground or inside another command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from fastapi import FastAPI

from sam2_mcp_worker.app import create_app
from sam2_mcp_worker.disk import check_data_dir
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

# Longer than any client keeps an idle connection (the bridge 4 s, httpx 5 s): the client always closes first, so no
# request is sent into a connection that is just being closed.
KEEP_ALIVE_S = 30
# Calls end inside 27 s by themselves; a stop waits this long for them, then children and calls are ended.
GRACEFUL_STOP_S = 3


def build_server(settings: Settings, app: FastAPI | None = None) -> uvicorn.Server:
    """A server that is configured, not started."""
    config = uvicorn.Config(
        app or create_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
        server_header=False,
    )
    return uvicorn.Server(config)


def bound_port(server: uvicorn.Server) -> int:
    """The port that a started server listens on."""
    return int(server.servers[0].sockets[0].getsockname()[1])


@asynccontextmanager
async def running_worker(settings: Settings, *, network: bool = False) -> AsyncIterator[str]:
    """A worker on a free loopback port for the length of the block; gives its base URL.

    With `network` that of masks and tracking is loaded before the block begins, if there is one. A worker that ends
    after its first call would never get through the checks of new weights, which may take longer than a call.

    Raises:
        WorkerError: it did not start, its processes cannot load, or its data directory cannot be written.
    """
    await asyncio.to_thread(check_data_dir, settings.data_dir)
    app = create_app(settings)
    server = build_server(settings, app)
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if task.done():
                raise WorkerError(
                    "worker_not_started", "the worker ended while it started", next_step="see the log above"
                )
            await asyncio.sleep(0.02)
        services = app.state.services
        await asyncio.gather(services.decoders.wait_ready(), services.ocr_pool.wait_ready())
        if network and services.sam_pool is not None:
            with suppress(WorkerError):  # the tool will say it
                await services.sam_pool.wait_ready()
        yield f"http://127.0.0.1:{bound_port(server)}"
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
