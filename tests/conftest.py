"""Parts that many tests share: where the language data is, and a real worker on a real port."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.models import OnnxPair, PairMissingError, fetch_onnx_pair

from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus" / "pdf"
# The network of SAM 2 takes 15 s to load, on a machine where others work several times as long.
START_LIMIT_S = 180.0


# No test may ever spend a developer's money: a key comes from the test that means its own fake server.
ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")
for name in (*ANTHROPIC, "OPENAI_API_KEY", "OPENAI_BASE_URL"):
    os.environ.pop(name, None)

# Machines are shared: how long an example takes says nothing about the code.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Everything runs on asyncio: the pool uses its subprocesses."""
    return "asyncio"


@pytest.fixture(scope="module")
async def decoders() -> AsyncIterator[ChildPool]:
    """One killable child that decodes files, under the worker's own limit of memory."""
    async with ChildPool(
        "decoder", DECODER_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
    ) as pool:
        yield pool


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker that serves: where, with what token, and its inside for those tests that look there."""

    base_url: str
    token: str
    services: Services
    loop: asyncio.AbstractEventLoop

    @property
    def headers(self) -> dict[str, str]:
        """The header that lets a request in."""
        return {"Authorization": f"Bearer {self.token}"}


class WorkerThread(threading.Thread):
    """A worker on an event loop of its own, so that tests of any kind can call it."""

    def __init__(self, settings: Settings, *, with_masks: bool = True) -> None:
        super().__init__(name="worker under test", daemon=True)
        self.settings = settings
        self.with_masks = with_masks
        self.ready = threading.Event()
        self.stop = asyncio.Event()
        self.worker: RunningWorker | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Serve until told to stop."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self.error = error
        finally:
            self.ready.set()

    async def _serve(self) -> None:
        from sam2_mcp_worker.app import create_app
        from sam2_mcp_worker.cli.server import bound_port, build_server

        app = create_app(self.settings)
        server = build_server(self.settings, app)
        task = asyncio.create_task(server.serve())
        while not server.started:
            if task.done():
                raise RuntimeError("the worker ended while it started")
            await asyncio.sleep(0.01)
        services: Services = app.state.services
        pools = (services.decoders, services.ocr_pool, services.sam_pool if self.with_masks else None)
        await asyncio.gather(*(pool.wait_ready() for pool in pools if pool is not None))
        loop = asyncio.get_running_loop()
        token = self.settings.read_token() or ""
        self.worker = RunningWorker(f"http://127.0.0.1:{bound_port(server)}", token, services, loop)
        self.ready.set()
        await self.stop.wait()
        server.should_exit = True
        await task


def serving(settings: Settings, *, with_masks: bool = True) -> Iterator[RunningWorker]:
    """A worker for the length of a fixture; without masks it is not waited for the engine that makes them."""
    thread = WorkerThread(settings, with_masks=with_masks)
    thread.start()
    assert thread.ready.wait(START_LIMIT_S), "the worker did not start"
    if thread.worker is None:
        raise RuntimeError("the worker did not start") from thread.error
    yield thread.worker
    thread.worker.loop.call_soon_threadsafe(thread.stop.set)
    thread.join(30)
    assert not thread.is_alive(), "the worker did not stop"


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """One worker for all tests that leave it as it was."""
    root = tmp_path_factory.mktemp("allowed")
    settings = Settings(
        port=0,
        token="test-token",  # type: ignore[arg-type]
        data_dir=tmp_path_factory.mktemp("worker-data"),
        allowed_roots=(str(root),),
        max_upload_bytes=64 * 1024 * 1024,
    )
    yield from serving(settings)


@pytest.fixture(scope="session")
def onnx_pair() -> OnnxPair:
    """A verified SAM pair for real masks. Not to be had: a skip on a developer's machine, a failure on CI."""
    try:
        return fetch_onnx_pair()
    except (PairMissingError, OSError) as error:
        reason = f"the MobileSAM pair for real masks is not here: {error}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def segmenting_worker(onnx_pair: OnnxPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """One worker that cuts masks with the pair, for all tests that leave it as it was."""
    settings = Settings(
        port=0,
        token="test-token",  # type: ignore[arg-type]
        data_dir=tmp_path_factory.mktemp("segmenting-worker"),
        ocr_processes=1,
        **onnx_pair.settings(),
    )
    yield from serving(settings)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Files that nobody here made; they lie beside the checkout and not in it."""
    if not CORPUS.is_dir():
        pytest.skip("../shared/corpus/pdf is not here")
    return CORPUS


def pytest_configure() -> None:
    """Tests must not depend on what the developer's shell has set.

    The station starts bridges as `python`, which is this very interpreter only if its folder comes first.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests that import ONNX Runtime before the engines report nothing either
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    for name in list(os.environ):
        if name.startswith("SAM2_MCP_") and name not in ("SAM2_MCP_TESSDATA_DIR", "SAM2_MCP_WRITE_GOLDEN"):
            del os.environ[name]
    # Local Whisper takes seconds and 300 MB of each worker; tests that mean it say `speech="auto"` or `"whisper"`.
    os.environ["SAM2_MCP_SPEECH"] = "openai"
