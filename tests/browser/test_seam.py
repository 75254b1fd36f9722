"""The seam inside the browser: the fast checksum, and random operations against real IndexedDB."""

from typing import Any

import pytest

from tests.browser.lab import Lab, put_lab
from tools.project import Project
from tools.serve import StaticServer


@pytest.fixture
def lab(project: Project, page: Any, strict_site: StaticServer) -> Lab:
    return Lab(page, put_lab(project, strict_site))


def test_the_fast_checksum_is_the_plain_one(lab: Lab):
    found = lab.run(
        """
        import json, random, struct
        from py_memory.browser.checksum import fast_chain
        from py_memory.image.log import CHUNK_BYTES, chain, checksum
        fast, generator, agreed = fast_chain(), random.Random(3), []
        for page_size in (512, 4096, 65536):
            size, start = page_size + 24, (generator.getrandbits(32), generator.getrandbits(32))
            frames, sums = bytearray(), start
            for _ in range(min(40, CHUNK_BYTES // size)):
                frame = bytearray(generator.randbytes(size))
                sums = checksum(*sums, bytes(frame[:8]))
                sums = checksum(*sums, bytes(frame[24:]))
                struct.pack_into(">2I", frame, 16, *sums)
                frames += frame
            count = len(frames) // size
            agreed.append(fast(memoryview(frames), size, *start) == count)
            agreed.append(fast(memoryview(b""), size, *start) == 0)
            for _ in range(25):
                changed, place = bytearray(frames), generator.randrange(len(frames))
                changed[place] ^= 1 << generator.randrange(8)
                one = memoryview(changed)
                agreed.append(fast(one, size, *start) == chain(one, size, *start))
        try:
            fast(memoryview(bytes(CHUNK_BYTES + 8)), 4120, 0, 0)
        except ValueError:
            agreed.append(True)
        "json:" + json.dumps([all(agreed), len(agreed)])
        """
    )
    assert found == [True, 82]


WALK = """
import json, time, js
import stored
from pyodide.ffi import to_js
from py_memory.browser.checksum import fast_chain
from py_memory.browser.indexeddb import IndexedDBStore
from py_memory.image.keeper import Keeper
from seam_operations import Walk

NAMES = {"abort": "abort", "lose_before": "lost before", "lose_after": "lost after"}

async def make_keeper():
    store = IndexedDBStore("walk", durability="relaxed")
    await store.open()
    return Keeper("/tmp/walk.db", store, verify=fast_chain(), fold_frames=60)

async def read_pages():
    return await stored.image("walk")

def fault(kind):
    js.faults.commits.length = 0
    if kind in NAMES:
        js.faults.commits.push(NAMES[kind])

walk = Walk("/tmp/walk.db", make_keeper, read_pages, fault, seed)
await walk.open()
end = time.monotonic() + seconds
steps = 0
while time.monotonic() < end:
    await walk.step()
    steps += 1
reloads = walk.keeper.reloads
await walk.close()
"json:" + json.dumps([steps, walk.compared, walk.counts, walk.frames_most])
"""


@pytest.mark.parametrize(
    "seconds", [50, pytest.param(400, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
def test_random_operations_against_indexeddb(lab: Lab, seconds: int):
    steps, compared, counts, frames = lab.run(WALK, seed=20 + seconds, seconds=seconds)
    assert steps == compared > 3 * seconds
    assert frames <= 60
    assert set(counts) >= {"abort", "reopen", "vacuum", "interrupt", "savepoints", "insert_many", "update"}
    print(steps, counts)
