"""What `doctor` finds about the embeddings endpoint: where texts go, its model, the day's costs. Spends nothing."""

from __future__ import annotations

from sam2_mcp_worker.cli.provider_way import spent_today, way_to, with_way
from sam2_mcp_worker.engines.openai_embeddings import DEFAULT_ADDRESS, build_embeddings
from sam2_mcp_worker.settings import Settings


async def embeddings_finding(settings: Settings) -> str:
    """The state in one line.

    Raises:
        WorkerError: asking the endpoint is useless, with the reason and the mend.
    """
    engine = build_embeddings(settings)
    assert engine is not None, "doctor has looked for a key"
    base_url = settings.embeddings_base_url or DEFAULT_ADDRESS
    try:
        await engine.start()
        trouble = engine.trouble or await engine.check_model()
        if trouble is not None:
            raise with_way(trouble, base_url)
        status = engine.status()
    finally:
        await engine.close()
    return f"texts go to {way_to(base_url)}; {status['model']}; {spent_today(status['today'])}"
