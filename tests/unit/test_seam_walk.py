"""Thousands of random operations: the kept pages are the database, byte for byte, after each."""

import pytest

from py_memory.errors import Aborted
from py_memory.image.keeper import Keeper
from py_memory.image.store import MemoryStore
from tests.unit.seam_operations import Walk, drive


def walk(folder, seed, steps):
    store = MemoryStore()
    path = str(folder / "image.db")

    async def make_keeper():
        await store.open()
        return Keeper(path, store, fold_frames=60)

    async def read_pages():
        return b"".join(page[16:] for _, page in sorted(store.shelf.pages.items()))

    def fault(kind):
        store.abort.clear()
        store.lose_before = int(kind == "lose_before")
        store.lose_after = int(kind == "lose_after")
        if kind == "abort":
            store.abort.append(Aborted("as told"))

    one = Walk(path, make_keeper, read_pages, fault, seed)
    drive(one.open())
    try:
        for _ in range(steps):
            drive(one.step())
        assert one.compared == steps
        return one
    finally:
        drive(one.close())


@pytest.mark.parametrize("seed", [1, 2])
def test_the_kept_pages_are_the_database(tmp_path, seed):
    one = walk(tmp_path, seed, 300)
    assert one.frames_most <= 60
    assert set(one.counts) >= {"abort", "reopen", "vacuum", "interrupt", "savepoints", "fold", "definitions"}


@pytest.mark.soak
@pytest.mark.cpython_only
@pytest.mark.parametrize("seed", range(10, 13))
def test_the_kept_pages_are_the_database_for_long(tmp_path, seed):
    assert walk(tmp_path, seed, 1_000).counts["abort"] > 20
