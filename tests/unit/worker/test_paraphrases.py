"""Paraphrases: nothing is sent without a key, nothing twice, and a likeness in meaning is for a person to look at."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.embedding_server import FakeEmbeddings, embedding_server, told_error
from tests.fakes.loopback import closed_port

from sam2_mcp_worker.checks.paraphrases import MAX_SENTENCES, nearest, sentences
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.cli.doctor_embeddings import embeddings_finding
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.openai_embeddings import read_vectors
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.paraphrases import Paraphrases, find_paraphrases
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import SpendBook, spend_scope
from sam2_mcp_worker.tools.get_status import current_status

PHRASE = "해약환급금은 납입한 보험료보다 적을 수 있습니다"
PAGE = (
    "무배당 든든한 건강보험",
    "중도에 그만두시면 돌려받는 금액이 낸 돈보다",
    "적을 수 있으니 주의하세요.",
    "가입 나이는 만 20세부터 60세까지입니다.",
)


def reading(*lines: str) -> Reading:
    return Reading("text", "line", (ReadPage(1, "done", tuple(ReadLine(line, "text") for line in lines)),))


@pytest.fixture
def fake() -> Iterator[FakeEmbeddings]:
    with embedding_server({"refund": ["해약환급금", "돌려받는 금액"]}) as server:
        yield server


class Desk:
    """Services with the endpoint, without starting any process."""

    def __init__(self, folder: Path, **settings: object) -> None:
        (folder / "kor.traineddata").touch()
        values = {"data_dir": folder, "tessdata_dir": folder} | settings
        self.services = Services(Settings(**values))  # type: ignore[arg-type]
        self.book = SpendBook()

    async def find(self, *lines: str, phrases: tuple[str, ...] = (PHRASE,)) -> Paraphrases | None:
        """One call of a worker that ends afterwards."""
        deadline = Deadline.after(20)
        try:
            with spend_scope(self.book, 1):
                return await find_paraphrases(self.services, phrases, reading(*lines), job="job", deadline=deadline)
        finally:
            if self.services.embedder is not None:
                await self.services.embedder.close()


async def test_a_sentence_that_means_the_same_is_found_with_its_lines(fake: FakeEmbeddings, tmp_path: Path) -> None:
    desk = Desk(tmp_path, **fake.settings())
    found = await desk.find(*PAGE)
    assert found is not None and found.note == ""
    assert found.found[PHRASE].sentence.lines == (0, 1, 2)
    assert found.found[PHRASE].likeness > 0.9
    [usage] = desk.book.take().values()
    assert usage.requests == 1 and usage.usd == pytest.approx(usage.input_tokens * 0.02 / 1e6)
    assert desk.services.embedder is not None
    assert desk.services.embedder.status()["today"]["requests"] == 1
    assert current_status(desk.services).embeddings is not None


async def test_a_sentence_of_another_meaning_is_not_told(fake: FakeEmbeddings, tmp_path: Path) -> None:
    found = await Desk(tmp_path, **fake.settings()).find(PAGE[0], PAGE[3])
    assert found == Paraphrases({})


async def test_no_text_is_sent_twice_also_by_another_worker(fake: FakeEmbeddings, tmp_path: Path) -> None:
    first = await Desk(tmp_path, **fake.settings()).find(*PAGE)
    sent = list(fake.texts)
    assert len(set(sent)) == len(sent)
    desk = Desk(tmp_path, **fake.settings())
    assert await desk.find(*PAGE) == first
    assert fake.texts == sent
    assert desk.book.take() == {}


async def test_without_a_key_or_anything_to_compare_nothing_is_sent(fake: FakeEmbeddings, tmp_path: Path) -> None:
    assert await Desk(tmp_path).find(*PAGE) is None
    assert current_status(Desk(tmp_path).services).embeddings is None
    desk = Desk(tmp_path, **fake.settings())
    assert await desk.find("짧다") is None
    assert await desk.find(*PAGE, phrases=()) is None
    assert fake.batches == []


ROW = {"index": 0, "embedding": [0.0] * 7 + [1.0]}
WRONG: dict[str, Response] = {
    "html": PlainTextResponse("<html>", media_type="text/html"),
    "too few": JSONResponse({"data": [ROW]}),
    "a number": JSONResponse(7),
    "zeros": JSONResponse({"data": [{"index": index, "embedding": [0.0] * 8} for index in range(5)]}),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_an_answer_that_is_none_is_a_note_and_no_failure(fake: FakeEmbeddings, tmp_path: Path, kind: str) -> None:
    fake.answers = [WRONG[kind]] * 3
    found = await Desk(tmp_path, **fake.settings()).find(*PAGE)
    assert found is not None and found.found == {}
    assert "is no embeddings endpoint" in found.note


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"embeddings_api_key": "sk-wrong"}, "does not accept the API key"),
        ({"embeddings_api_key": "sk wrong"}, "no key has"),
        ({"embeddings_model": "other"}, "does not know its model"),
        ({"embeddings_base_url": "example"}, "is no address"),
        ({"embeddings_daily_cap_usd": 0.0}, "cap of 0.00"),
        ({"embeddings_base_url": f"http://127.0.0.1:{closed_port()}/v1"}, "no connection"),
    ],
)
async def test_what_is_wrong_with_the_endpoint_is_told_by_call_and_doctor(
    fake: FakeEmbeddings, tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    desk = Desk(tmp_path, **(fake.settings() | changes))
    found = await desk.find(*PAGE)
    assert found is not None and told in found.note
    assert "sk-" not in found.note
    with pytest.raises(WorkerError, match=told):
        await embeddings_finding(desk.services.settings)
    assert fake.texts == []


async def test_doctor_tells_where_texts_go_and_spends_nothing(fake: FakeEmbeddings, tmp_path: Path) -> None:
    told = await embeddings_finding(Settings(data_dir=tmp_path, **fake.settings()))
    assert told == "texts go to 127.0.0.1; text-embedding-3-small; 0.0000 of 1.00 US dollars spent today"
    assert fake.batches == []


async def test_a_limit_of_rate_and_an_older_gateway_are_overcome(fake: FakeEmbeddings, tmp_path: Path) -> None:
    fake.answers = [told_error(429, "slow down", headers={"retry-after-ms": "10"})]
    fake.knows_format = False
    found = await Desk(tmp_path, **fake.settings()).find(*PAGE)
    assert found is not None and PHRASE in found.found


async def test_a_long_document_is_sent_in_batches_up_to_a_bound_that_is_told(
    fake: FakeEmbeddings, tmp_path: Path
) -> None:
    found = await Desk(tmp_path, **fake.settings()).find(*(f"{number}번째 문장은 다릅니다." for number in range(700)))
    assert sum(fake.batches) == MAX_SENTENCES + 1
    assert max(fake.batches) == 64
    assert found is not None and str(MAX_SENTENCES) in found.note


lines = st.lists(st.text(alphabet="가나다 .다음함\n", max_size=400), max_size=30)


@given(lines)
def test_every_sentence_stands_in_lines_of_its_own_in_order(texts: list[str]) -> None:
    found = sentences(reading(*texts))
    used = [line for sentence in found for line in sentence.lines]
    assert used == sorted(set(used))
    for sentence in found:
        assert sentence.text[:20].strip() in " ".join(" ".join(texts[line] for line in sentence.lines).split())


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=9))
def test_the_nearest_is_the_one_with_the_greatest_product(vectors: list[list[float]]) -> None:
    index, likeness = nearest(vectors[0], vectors)
    products = [math.fsum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors]
    assert likeness == pytest.approx(max(products))
    assert products[index] == pytest.approx(max(products))


words = st.sampled_from(["data", "index", "embedding", "usage"])
answers = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=60) | answers.map(lambda value: json.dumps(value).encode()))
def test_whatever_answers_nothing_but_vectors_is_believed(body: bytes) -> None:
    vectors, tokens = read_vectors(body, 1)
    assert vectors is None and tokens == 0
