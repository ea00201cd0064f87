"""Real files that nobody here made: each is read, or refused by name; none is an empty success."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.corpus import inspect
from tests.conftest import RunningWorker
from tests.e2e.tools import Agent

# file: (error, pages done, pages failed, sources, fewest characters). A corpus file that is not named here must be read
# to the end all the same.
EXPECTED = {
    "Pages-tree-refs.pdf": ("", 1, 1, "failed:1 text_layer:1", 10),
    "bomb_giant.pdf": ("", 1, 0, "text_layer:1", 30),
    "bug1627427_reduced.pdf": ("", 1, 0, "text_layer:1", 20),
    "bug1771477.pdf": ("", 1, 0, "text_layer:1", 200),
    "bug1978317.pdf": ("", 1, 0, "text_layer:1", 16_000),
    "cmyk-image.pdf": ("", 1, 0, "none:1", 0),  # a photograph of clouds
    "encrypted-attachment.pdf": ("", 1, 0, "text_layer:1", 5),
    "habibi-rotated.pdf": ("", 4, 0, "text_layer:4", 40),
    "imagemagick-images.pdf": ("", 6, 0, "none:6", 0),  # pages of 5 pt with one colour each
    "inline-image.pdf": ("", 1, 0, "text_layer:1", 5),
    "issue20232.pdf": ("", 1, 0, "ocr:1", 50),  # the text layer that lies
    "issue5010.pdf": ("", 1, 0, "text_layer:1", 10),
    "issue6010_1.pdf": ("[password_required]", 0, 0, "", 0),
    "libreoffice-form.pdf": ("", 1, 0, "text_layer:1", 90),
    "libreoffice-writer-password.pdf": ("[password_required]", 0, 0, "", 0),
    "noembed-identity-2.pdf": ("", 1, 0, "text_layer:1", 10),
    "pdflatex-image.pdf": ("", 1, 0, "text_layer:1", 450),
    "poppler-395-0-fuzzed.pdf": ("[pdf_empty]", 0, 0, "", 0),
    "poppler-85140-0.pdf": ("", 0, 1, "failed:1", 0),
    "poppler-937-0-fuzzed.pdf": ("", 0, 1, "failed:1", 0),
    "print_protection.pdf": ("[password_required]", 0, 0, "", 0),
    "with-attachment.pdf": ("", 1, 0, "text_layer:1", 400),
}
# 117 pages, four calls: run by tests/bench/corpus.py.
TOO_LONG_HERE = {"GeoTopo-komprimiert.pdf"}


@pytest.mark.timeout(180)
async def test_every_corpus_file_ends_as_it_should(worker: RunningWorker, corpus: Path) -> None:
    agent = Agent(worker)
    for path in sorted(corpus.glob("*.pdf")):
        if path.name in TOO_LONG_HERE:
            continue
        outcome = await inspect(agent, path)
        assert outcome.longest_call_s < 27
        assert outcome.unreached == 0
        if path.name in EXPECTED:
            error, done, failed, sources, characters = EXPECTED[path.name]
            found = (outcome.error, outcome.done, outcome.failed, outcome.sources)
            assert found == (error, done, failed, sources), path.name
            assert outcome.characters >= characters, path.name
    assert not worker.services.trouble()


async def test_the_lying_text_layer_is_named_as_such(worker: RunningWorker, corpus: Path) -> None:
    agent = Agent(worker)
    result = await agent.call("inspect_pdf", source=await agent.upload(corpus / "issue20232.pdf"))
    page = result["pages"][0]
    assert page["source"] == "ocr"
    assert "킘킷킼" not in page["text"]  # what the layer claims, and nobody sees
    assert any("does not say what is printed" in note for note in page["notes"])
