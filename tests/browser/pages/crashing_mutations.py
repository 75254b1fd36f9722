"""Ways to spoil the engine, each of which the crash harness has to notice; run in the worker."""
# ruff: noqa: ARG001, ARG005  # they stand in for what takes more

from functools import partial
from random import randrange

from py_memory import ledger
from py_memory.browser.indexeddb import IndexedDBStore, _fill, _ready
from py_memory.browser.worker import Desk


def acknowledge_before_complete():
    """Answer when the commit was asked for."""

    async def settled(self, done):
        return "complete"

    IndexedDBStore._settled = settled


def record_in_its_own_transaction():
    """Put the pages in one transaction, and the record about the image in another."""

    async def put(self, records, meta, end):
        ready = list(_ready(records))
        await self.write(partial(_fill, ready), lambda about: None, None)
        await self.write(lambda pages: None, lambda about: about.put(meta, "image"), end)

    IndexedDBStore.put = put


def no_ledger():
    """Apply a call that is made again as if it were new."""
    ledger.answer_of = lambda connection, call: None
    ledger.note = lambda connection, call, answer, now: None


def many_in_two_transactions():
    """Keep the first row of a write of many rows before the others."""
    call = Desk._call

    async def in_two(self, method, args, binary, named):
        if method == "session.remember_many":
            await call(self, method, {**args, "items": args["items"][:1]}, binary, None)
            return await call(self, method, {**args, "items": args["items"][1:]}, binary, None)
        return await call(self, method, args, binary, named)

    Desk._call = in_two


def no_fence():
    """Commit whoever owns the memory: the key that is added is never there."""
    write = IndexedDBStore.write

    async def anyhow(self, pages, beside, end):
        epoch, self.epoch = self.epoch, -randrange(1_000, 1_000_000_000)
        try:
            await write(self, pages, beside, end)
        finally:
            self.epoch = epoch

    IndexedDBStore.write = anyhow
