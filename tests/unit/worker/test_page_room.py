"""Room for drawn pages: bounded bytes, in order, and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.pipelines.page_room import BYTES_PER_PIXEL, PageRoom


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 60))
def test_pages_enter_in_order_and_never_exceed_the_room_unless_one_is_alone(sizes: list[int], room_px: int) -> None:
    entered: list[int] = []
    inside: dict[int, int] = {}

    async def one(room: PageRoom, number: int) -> None:
        async with room.for_page((sizes[number], 1)):
            entered.append(number)
            inside[number] = sizes[number]
            assert sum(inside.values()) <= room_px or len(inside) == 1
            assert room.taken_bytes == sum(inside.values()) * BYTES_PER_PIXEL
            for _ in range(sizes[number] % 4):
                await asyncio.sleep(0)
            del inside[number]

    async def all_of_them() -> None:
        room = PageRoom(drawn_at_once=1, max_bytes=room_px * BYTES_PER_PIXEL)
        await asyncio.wait_for(asyncio.gather(*(one(room, number) for number in range(len(sizes)))), 10)
        assert room.taken_bytes == 0

    asyncio.run(all_of_them())
    assert entered == list(range(len(sizes)))


async def test_a_page_that_fails_or_is_cancelled_gives_its_room_back() -> None:
    room = PageRoom(drawn_at_once=1, max_bytes=10 * BYTES_PER_PIXEL)
    with pytest.raises(ValueError, match="broken"):
        async with room.for_page((10, 1)):
            raise ValueError("broken")

    async def stay() -> None:
        async with room.for_page((10, 1)):
            await asyncio.Event().wait()

    staying, waiting = asyncio.create_task(stay()), asyncio.create_task(stay())
    while room.taken_bytes == 0:
        await asyncio.sleep(0)
    for task in (waiting, staying):
        task.cancel()
    await asyncio.gather(staying, waiting, return_exceptions=True)
    assert room.taken_bytes == 0
    async with room.for_page((10, 1)):
        assert room.taken_bytes == 10 * BYTES_PER_PIXEL
