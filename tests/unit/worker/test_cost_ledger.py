"""The record of what vision costs: the day's cap holds whatever is under way, in one worker or several."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.engines import cost_ledger
from sam2_mcp_worker.engines.cost_ledger import CostLedger, Reservation
from sam2_mcp_worker.spending import Usage

DAY_S = 86_400.0


class Clock:
    """A day that the test turns."""

    def __init__(self) -> None:
        self.now_s = 1_796_040_000.0

    def __call__(self) -> float:
        return self.now_s


def reserved(ledger: CostLedger, usd: float) -> Reservation:
    got = ledger.reserve(usd)
    assert isinstance(got, Reservation)
    return got


def test_a_settled_request_counts_with_what_it_cost(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "spending" / "claude.sqlite", 1.0)
    reservation = reserved(ledger, 0.9)
    assert ledger.today.reserved_usd == 0.9
    assert ledger.reserve(0.2) == "reserved"
    ledger.settle(reservation, Usage(1, 1500, 300, 0.0125))
    assert ledger.today.spent == Usage(1, 1500, 300, 0.0125)
    assert ledger.today.reserved_usd == 0
    assert isinstance(ledger.reserve(0.9), Reservation)
    assert ledger.reserve(0.9876) == "cap"
    assert not ledger.fits(0.9876)
    assert ledger.fits(0.9875)


def test_the_record_outlives_the_worker_and_is_shared_between_workers(tmp_path: Path) -> None:
    one, other = (CostLedger(tmp_path / "claude.sqlite", 1.0) for _ in range(2))
    one.settle(reserved(one, 0.5), Usage(1, 10, 20, 0.4))
    killed = reserved(other, 0.5)
    assert one.reserve(0.2) == "reserved"
    one.close()
    later = CostLedger(tmp_path / "claude.sqlite", 1.0)
    assert later.today.spent == Usage()
    assert later.refresh() == ""
    assert later.today.spent == Usage(1, 10, 20, 0.4)
    # Nobody knows what came of it, so that it counts in full.
    assert later.today.reserved_usd == 0.5
    other.settle(killed, Usage(1, 1, 1, 0.1))
    assert isinstance(later.reserve(0.5), Reservation)


def test_a_new_day_begins_with_nothing_spent(tmp_path: Path) -> None:
    clock = Clock()
    ledger = CostLedger(tmp_path / "claude.sqlite", 1.0, clock)
    reservation = reserved(ledger, 1.0)
    first_day = ledger.today.day
    clock.now_s += DAY_S
    assert ledger.today.day > first_day
    assert ledger.fits(1.0)
    ledger.settle(reservation, Usage(1, 1, 1, 0.7))
    assert ledger.today.spent == Usage()
    assert isinstance(ledger.reserve(1.0), Reservation)
    clock.now_s -= DAY_S
    ledger.refresh()
    assert ledger.today.spent.usd == 0.7


def test_a_cap_of_nothing_lets_nothing_through(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "claude.sqlite", 0.0)
    assert ledger.reserve(0.000001) == "cap"
    assert not ledger.fits(0.000001)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_reserved_and_spent_together_never_pass_the_cap(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    ledger = CostLedger(tmp_path_factory.mktemp("ledger") / "claude.sqlite", 1.0)
    under_way: list[tuple[Reservation, float]] = []
    for _ in range(12):
        ends = data.draw(st.booleans())
        if under_way and ends:
            reservation, worst = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            ledger.settle(reservation, Usage(1, 0, 0, worst * data.draw(st.floats(0, 1))))
        else:
            worst = data.draw(st.floats(0, 0.6))
            got = ledger.reserve(worst)
            if isinstance(got, Reservation):
                under_way.append((got, worst))
        assert ledger.today.spent.usd + ledger.today.reserved_usd <= 1.0 + 1e-9
    ledger.close()


@pytest.mark.parametrize("trouble", ["damaged", "folder"])
def test_a_record_that_cannot_be_written_stops_spending_until_it_is_mended(tmp_path: Path, trouble: str) -> None:
    path = tmp_path / "spending" / "claude.sqlite"
    path.parent.mkdir()
    if trouble == "damaged":
        path.write_bytes(b"no database at all, but long enough to look like one" * 50)
    else:
        path.mkdir()
    ledger = CostLedger(path, 1.0)
    assert ledger.reserve(0.1) == "unwritable"
    assert "cannot be used" in ledger.refresh()
    path.unlink() if trouble == "damaged" else path.rmdir()
    reservation = reserved(ledger, 0.1)
    ledger.close()
    path.unlink()
    path.mkdir()
    ledger.settle(reservation, Usage(1, 1, 1, 0.1))  # says so in the log, and does not raise


def test_what_could_not_be_settled_is_settled_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_ledger, "BUSY_PAUSE_S", 0.0)
    ledger = CostLedger(tmp_path / "claude.sqlite", 1.0)
    one, other = reserved(ledger, 0.4), reserved(ledger, 0.4)
    with closing(sqlite3.connect(tmp_path / "claude.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        ledger.settle(one, Usage(1, 5, 5, 0.1))
        ledger.settle(other, Usage(1, 5, 5, 0.2))
        assert ledger.reserve(0.1) == "unwritable"
        assert ledger.today.reserved_usd == 0.8
    assert ledger.refresh() == ""
    assert ledger.today.reserved_usd == 0
    assert ledger.today.spent == Usage(2, 10, 10, 0.3)
    assert ledger.refresh() == ""
    assert ledger.today.spent.requests == 2


def test_a_file_that_another_worker_keeps_is_not_waited_for_by_each_request(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "claude.sqlite", 1.0)
    assert ledger.refresh() == ""
    with closing(sqlite3.connect(tmp_path / "claude.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert ledger.reserve(0.1) == "unwritable"
    assert ledger.reserve(0.1) == "unwritable"


def test_a_record_of_other_things_than_numbers_stops_spending(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "claude.sqlite", 1.0)
    ledger.settle(reserved(ledger, 0.1), Usage(1, 1, 1, 0.1))
    with closing(sqlite3.connect(tmp_path / "claude.sqlite", isolation_level=None)) as other:
        other.execute("UPDATE spent SET nano_usd = 'much'")
    assert ledger.reserve(0.1) == "unwritable"
