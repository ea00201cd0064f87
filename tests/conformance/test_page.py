from tests.conformance.checks import Judgement, Row
from tests.conformance.foreign import ERAS
from tests.conformance.foreign import ERRANDS as FOREIGN_ERRANDS
from tests.conformance.groups import CLIENT_GROUPS, SERVER_GROUPS
from tests.conformance.inspector import COLUMNS, ERRANDS
from tests.conformance.page import render, versions

VISITED = {(errand.tool, era): Row("pass") for errand in FOREIGN_ERRANDS for era in ERAS}
INSPECTED = {(errand.name, *column): Row("pass") for errand in ERRANDS for column in COLUMNS}


def page(**rows: Row) -> str:
    judgements = {group.key: Judgement({"ping": Row("pass", (), 2)}) for group in (*SERVER_GROUPS, *CLIENT_GROUPS)}
    judgements["worker-legacy"].rows |= rows
    judgements["client-legacy"].rows |= {f"auth/{n}": Row("not applicable", ("no OAuth",)) for n in range(3)}
    return render(judgements, INSPECTED, VISITED)


def test_the_page_names_the_pinned_versions() -> None:
    assert all(version in page() for version in versions().values())
    assert set(versions()) == {"suite", "inspector", "everything"}


def test_each_reason_is_told_once_and_marked_where_it_holds() -> None:
    text = page(a=Row("expected failure", ("stateless",)), b=Row("expected failure", ("stateless", "other")))
    assert text.count("stateless\n") == 1
    assert "| `a` | expected failure [1] |" in text
    assert "| `b` | expected failure [1] [2] |" in text
    assert text.endswith("1. stateless\n2. other\n3. no OAuth\n")


def test_a_failure_shows_in_the_totals_and_in_its_row() -> None:
    text = page(a=Row("FAIL"))
    assert "| worker, 2025-11-25 | 1 (1 FAIL) | 0 | 0 | 2 |" in text
    assert "| `a` | FAIL |" in text


def test_authorization_scenarios_share_a_row() -> None:
    assert page().count("`auth/*`") == 1
    assert "| bridge as client, host 2025-11-25, server 2025-11-25 | 1 | 0 | 3 | 2 |" in page()
