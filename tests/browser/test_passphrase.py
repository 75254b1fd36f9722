"""A memory with a passphrase: nothing readable is stored, and nothing that was put back is taken for new."""

import pytest

from tests.browser.lab import FAULTY, Lab, unharmed

OLD, NEW = "korrekt Pferd 电池 klammer", "another one, longer"

PREPARE = (
    f"OLD, NEW = {OLD!r}, {NEW!r}\n"
    """
async def sealed(passphrase=OLD):
    memory = await open_memory(NAME, passphrase=passphrase)
    session = await memory.start_session("u_1", session_id="s_1")
    return memory, session

async def refusal(passphrase=OLD, **options):
    '''Give code and kind of the error with which opening ends; `ok` if it does not.'''
    try:
        opened = await open_memory(NAME, passphrase=passphrase, **options)
    except PyMemoryError as error:
        return [error.code, error.details.get("kind")]
    await opened.close()
    return ["ok", None]

async def unfenced():
    '''All records but those of the epochs, which every opening raises.'''
    everything = await stored.everything(NAME)
    return {place: one for place, one in everything.items() if not place.startswith("fence")}

async def filled(count):
    '''A closed memory of so many fragments.'''
    memory, session = await sealed()
    await session.remember_many([{"content": f"fragment {n} " * 30} for n in range(count)])
    return memory, session
"""
)


def test_what_was_remembered_comes_back_with_the_passphrase_only(lab: Lab):
    found = lab.run(
        """
        memory, session = await sealed()
        for n in range(5): await session.remember(f"单独 number {n}")
        shown = await fragments(memory)
        await memory.close()
        refused = [await refusal(one) for one in (NEW, OLD + " ", None)]
        texts = []
        for one in (NEW, None):
            try: await open_memory(NAME, passphrase=one)
            except PyMemoryError as error: texts.append([error.message, error.details])
        wrong = [await refusal(one) for one in ("", 7, b"x", "a\\ud800")]
        # As another keyboard may write it: NFKC makes it the same.
        memory, session = await sealed(OLD.replace("ferd", "\uff46erd"))
        again = await fragments(memory)
        await session.remember("one more")
        await memory.close()
        answer([shown == again, len(again), refused, texts, wrong, await refusal()])
        """
    )
    same, count, refused, texts, wrong, right = found
    assert same
    assert count == 5
    assert refused == [["wrong_passphrase", None]] * 3
    assert texts[0] == texts[1]  # neither says which was closer
    assert wrong == [["invalid_argument", None]] * 4
    assert right == ["ok", None]


def test_a_damaged_or_unknown_key_is_not_called_a_wrong_passphrase(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(3)
        await memory.close()
        key = (await stored.everything(NAME))["meta key"]
        found = []
        for changed in (
            key.replace(json.loads(key)["salt"], "A" * 22 + "=="),
            key.replace("600000", "900000"),
            key[:-9],
            "{}",
            None,
        ):
            await stored.restore(NAME, {"meta key": changed})
            damaged = await unfenced()
            found.append(await refusal())
            found[-1].append(await unfenced() == damaged)
            found[-1].append(await refusal(None))
        await stored.restore(NAME, {"meta key": key})
        answer([found, await refusal(), json.loads(key)["iterations"]])
        """
    )
    refused, right, iterations = found
    assert [one[:3] for one in refused] == [["corrupt_image", "key", True]] * 5
    assert [one[3] for one in refused] == [["wrong_passphrase", None]] * 4 + [["corrupt_image", "key"]]
    assert right == ["ok", None]
    assert iterations >= 600_000


def test_a_newer_form_of_the_key_is_not_called_damaged(lab: Lab):
    found = lab.run(
        """
        import base64, hashlib
        memory, session = await filled(3)
        await memory.close()
        key = json.loads((await stored.everything(NAME))["meta key"])
        del key["check"]
        key["version"] = 2
        text = json.dumps(key, separators=(",", ":"))
        key["check"] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        await stored.restore(NAME, {"meta key": json.dumps(key, separators=(",", ":"))})
        answer(await refusal())
        """
    )
    assert found == ["unsupported_format", None]


def test_another_passphrase_is_one_record(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(300)
        before = await stored.everything(NAME)
        codes = [
            await outcome(memory.change_passphrase(passphrase=NEW, new_passphrase=OLD)),
            await outcome(memory.change_passphrase(passphrase=OLD, new_passphrase="")),
        ]
        unchanged = await stored.everything(NAME) == before
        await memory.change_passphrase(passphrase=OLD, new_passphrase=NEW)
        after = await stored.everything(NAME)
        await session.remember("goes on")
        await memory.close()
        changed = [place for place in before.keys() | after.keys() if before.get(place) != after.get(place)]
        ids = [json.loads(one["meta key"])["store"] for one in (before, after)]
        answer([codes, unchanged, changed, ids[0] == ids[1], await refusal(), await refusal(NEW)])
        """
    )
    codes, unchanged, changed, same_store, old, new = found
    assert codes == ["wrong_passphrase", "invalid_argument"]
    assert unchanged
    assert changed == ["meta key"]
    assert same_store
    assert old == ["wrong_passphrase", None]
    assert new == ["ok", None]


@pytest.mark.parametrize(
    ("commits", "code", "opens"),
    [
        (["quota"], "quota_exceeded", OLD),
        (["abort"], "aborted", OLD),
        (["lost before"], "ok", NEW),
        (["lost after"], "ok", NEW),
        (["lost before"] * 4, "storage_lost", OLD),
    ],
    ids=str,
)
def test_a_change_that_fails_leaves_the_old_passphrase(lab: Lab, commits: list, code: str, opens: str):
    found = lab.run(
        """
        memory, session = await filled(3)
        for fault in commits: js.faults.commits.push(fault)
        code = await outcome(memory.change_passphrase(passphrase=OLD, new_passphrase=NEW))
        await memory.close()
        answer([code, await refusal(opens)])
        """,
        commits=commits,
        opens=opens,
    )
    assert found == [code, ["ok", None]]


def test_a_robbed_owner_cannot_change_the_passphrase(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(3)
        _, _, fence = await stored.stored(NAME)
        await stored.change(NAME, fence=max(fence) + 1)
        code = await outcome(memory.change_passphrase(passphrase=OLD, new_passphrase=NEW))
        await memory.close()
        answer([code, await refusal()])
        """
    )
    assert found == ["owner_lost", ["ok", None]]


def test_a_plain_memory_has_no_passphrase_to_change(lab: Lab):
    code = lab.run(
        """
        memory = await open_memory(NAME)
        await outcome(memory.change_passphrase(passphrase=OLD, new_passphrase=NEW))
        """
    )
    assert code == "unsupported"


def test_no_nonce_is_used_twice(lab: Lab):
    found = lab.run(
        """
        memory = await open_memory(NAME, passphrase=OLD, durability="relaxed")
        connection = memory._owner._memory.database.connection
        connection.execute("CREATE TABLE again (n INTEGER)")
        seen, records, generation = set(), 0, memory.storage["generation"]
        for turn in range(150):
            await memory._owner.run(lambda _: connection.execute("INSERT INTO again VALUES (1)"))
            now = await stored.everything(NAME)
            new = [one for place, one in now.items() if len(str(one)) > 100 and place != "meta key"]
            fresh = {(one[:24], one[24:48]) for one in new}
            records += len(fresh - seen)
            seen |= fresh
        nonces = len({nonce for _, nonce in seen})
        answer([len(seen), nonces, records, memory.storage["generation"] - generation])
        """
    )
    writes, nonces, records, generations = found
    assert generations == 150
    assert writes == nonces == records
    assert writes > 300  # the page, the list and the record about the image, each time


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("{'pages 3': flipped(now['pages 3'])}", "seal"),
        ("{'pages 3': flipped(now['pages 3'], 30)}", "seal"),
        ("{'pages 3': flipped(now['pages 3'], 5)}", "generation"),
        ("{'pages 3': now['pages 4'], 'pages 4': now['pages 3']}", "hole"),
        ("{'pages 3': now['pages 3'][:24] + now['pages 4'][24:]}", "seal"),
        ("{'pages 3': now['pages 3'][:-2]}", "record"),
        ("{'pages 3': None}", "hole"),
        ("{f'pages {last}': None}", "hole"),
        ("{f'pages {last + 1}': now[f'pages {last}']}", "count"),
        ("{page: earlier[page]}", "generation"),
        ("{'meta generations:0': earlier['meta generations:0']}", "generations"),
        ("{'meta generations:0': flipped(now['meta generations:0'])}", "generations"),
        ("{'meta generations:0': None}", "generations"),
        ("{'meta generations:1': now['meta generations:0']}", "generations"),
        ("{'meta image': earlier['meta image']}", "meta"),
        ("{'meta image': flipped(now['meta image'])}", "meta"),
        ("{'meta image': None}", "meta"),
        ("{place: earlier[place] for place in ('meta image', 'meta generations:0')}", "generation"),
        ("{'pages 3': other['pages 3']}", "seal"),
        ("{'meta image': other['meta image'], 'meta generations:0': other['meta generations:0']}", "meta"),
    ],
)
def test_what_was_changed_or_put_back_is_noticed_and_left(lab: Lab, damage: str, kind: str):
    found = lab.run(
        f"""
        def flipped(record, at=-1):
            data = bytearray.fromhex(record)
            data[at] ^= 1
            return data.hex()

        other_name, NAME = NAME, NAME + "-other"
        memory, session = await filled(40)
        await memory.close()
        other, NAME = await stored.everything(NAME), other_name
        memory, session = await filled(40)
        earlier = await stored.everything(NAME)
        for n in range(3): await session.remember(f"later {{n}}")
        await memory.close()
        now = await stored.everything(NAME)
        last = max(int(place.split()[1]) for place in now if place.startswith("pages"))
        page = next(p for p in earlier if p.startswith("pages") and p in now and earlier[p] != now[p])
        await stored.restore(NAME, {damage})
        before = await unfenced()
        found = await refusal()
        after = await unfenced()
        raw = await export_raw(NAME, passphrase=OLD)
        await stored.restore(NAME, {{**{{place: None for place in before if place not in now}}, **now}})
        memory, _ = await sealed()
        restored = len(await fragments(memory))
        answer([found, before == after, raw[:15].decode(), len(raw) // 4096 - last, restored])
        """
    )
    refused, untouched, start, missing, restored = found
    assert refused == ["corrupt_image", kind]
    assert untouched
    assert start == "SQLite format 3"
    assert abs(missing) <= 1
    assert restored == 43  # the damage was the only thing in the way


def test_the_list_follows_an_image_that_grows_and_shrinks(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(3)
        small = await memory.export_image()
        for n in range(6):
            await session.remember(b"x" * 1_100_000, type="image", media_type="image/png")
        large = await stored.everything(NAME)
        await memory.import_image(small)
        shrunk = await stored.everything(NAME)
        await session.remember("after")
        await memory.close()
        first = await refusal()
        # Pages that were dropped, put back beyond the end, and the list's part with them.
        beyond = {place: one for place, one in large.items() if place not in shrunk}
        await stored.restore(NAME, beyond)
        back = await refusal()
        await stored.restore(NAME, {place: None for place in beyond})
        memory, _ = await sealed()
        parts = [sum("generations" in place for place in one) for one in (large, shrunk)]
        answer([parts, first, back, len(await fragments(memory))])
        """
    )
    parts, first, back, count = found
    assert parts[0] >= 6
    assert parts[1] == 1
    assert first == ["ok", None]
    assert back == ["corrupt_image", "generations"]
    assert count == 4


def test_a_write_costs_what_it_changes_and_not_what_is_there(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(3)
        async def written():
            before = await stored.everything(NAME)
            await session.remember("small")
            after = await stored.everything(NAME)
            changed = [place for place in after if after[place] != before.get(place)]
            return [sum(place.startswith(kind) for place in changed) for kind in ("pages", "meta gen")]
        few = await written()
        for n in range(8):
            await session.remember(b"x" * 1_100_000, type="image", media_type="image/png")
        many = await written()
        answer([few, many, len(await stored.everything(NAME))])
        """
    )
    few, many, records = found
    assert records > 2_000
    assert many[1] <= many[0] <= few[0] + 12
    assert few[1] == 1


@pytest.mark.parametrize(
    ("commits", "invalid", "unopenable", "code"),
    [
        (["quota"], 0, 0, "quota_exceeded"),
        (["abort"], 0, 0, "aborted"),
        ([], 1, 3, "storage_lost"),
        (["throws"], 0, 0, "ok"),
        (["lost before"], 0, 0, "ok"),
        (["lost after"], 0, 0, "ok"),
        (["lost before"], 0, 3, "storage_lost"),
        (["lost after"], 0, 3, "storage_lost"),
    ],
    ids=str,
)
def test_after_every_fault_memory_equals_disk(
    lab: Lab, commits: list, invalid: int, unopenable: int, code: str
):
    given = {"commits": commits, "invalid": invalid, "unopenable": unopenable}
    found = lab.run(
        f"""{FAULTY}
async def equal(memory):
    shown = await memory._owner.run(lambda one: one.database.connection.serialize())
    return shown == await export_raw(NAME, passphrase=OLD)

await meets_faults(sealed, equal)
""",
        **given,
    )
    unharmed(found, code, commits)


def test_a_plain_memory_is_sealed_by_opening_it_with_a_passphrase(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        for n in range(40): await session.remember(f"PLAINSENTINEL {n}")
        await memory.close()
        plain = await unfenced()
        async def holds():
            everything = await stored.everything(NAME)
            return b"PLAINSENTINEL".hex() in "".join(map(str, everything.values()))
        first = await holds()
        failed = []
        for fault in ("quota", "abort", "lost before"):
            # The epoch is raised by a commit of its own.
            for one in ("none", fault): js.faults.commits.push(one)
            failed.append((await refusal())[0])
            js.faults.commits.length = 0
            failed.append(await unfenced() == plain)
        memory, session = await sealed()
        second = await holds()
        shown = len(await fragments(memory))
        await session.remember("and goes on")
        await memory.close()
        answer([first, failed, second, shown, await refusal(None), await refusal()])
        """
    )
    first, failed, second, shown, without, with_it = found
    assert first  # the search can find
    assert failed == ["quota_exceeded", True, "aborted", True, "storage_lost", True]
    assert not second
    assert shown == 40
    assert without == ["wrong_passphrase", None]
    assert with_it == ["ok", None]


def test_a_damaged_plain_memory_is_not_converted(lab: Lab):
    found = lab.run(
        """
        memory, session = await started()
        for n in range(40): await session.remember(f"fragment {n}")
        await memory.close()
        pages, _, _ = await stored.stored(NAME)
        await stored.change(NAME, pages={3: pages[3][:-1] + bytes([pages[3][-1] ^ 1])})
        before = await unfenced()
        answer([await refusal(), await unfenced() == before])
        """
    )
    assert found == [["corrupt_image", "checksum"], True]


def test_the_raw_image_needs_the_passphrase_and_zeros_what_fails(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(40)
        await memory.close()
        whole = await export_raw(NAME, passphrase=OLD)
        now = await stored.everything(NAME)
        data = bytearray.fromhex(now["pages 3"])
        data[-1] ^= 1
        await stored.restore(NAME, {"pages 3": data.hex(), "meta image": None, "meta generations:0": None})
        codes = [await outcome(export_raw(NAME)), await outcome(export_raw(NAME, passphrase=NEW))]
        raw = await export_raw(NAME, passphrase=OLD)
        await stored.restore(NAME, {"meta key": None, "meta image": now["meta image"]})
        codes.append(await outcome(export_raw(NAME, passphrase=OLD)))
        page = raw[8192:12288] == bytes(4096)
        answer([codes, raw[:8192] == whole[:8192], page, raw[12288:] == whole[12288:]])
        """
    )
    assert found == [["wrong_passphrase", "wrong_passphrase", "corrupt_image"], True, True, True]


def test_without_the_module_a_passphrase_is_unsupported(lab: Lab):
    found = lab.run(
        """
        memory, session = await filled(1)
        await memory.close()
        module, js.pyMemorySealing = js.pyMemorySealing, None
        found = [await refusal(), await refusal(None)]
        NAME = NAME + "-new"
        found += [await refusal(), await refusal(None)]
        js.pyMemorySealing = module
        answer(found)
        """
    )
    assert found == [["unsupported", None], ["wrong_passphrase", None], ["unsupported", None], ["ok", None]]


def test_sealing_leaves_no_proxy_behind(lab: Lab):
    found = lab.run(
        """
        import gc
        memory = await open_memory(NAME, durability="relaxed", passphrase=OLD)
        connection = memory._owner._memory.database.connection
        connection.execute("CREATE TABLE soak (n INTEGER)")
        async def commit(count):
            for _ in range(count):
                await memory._owner.run(lambda _: connection.execute("INSERT INTO soak VALUES (1)"))
            gc.collect()
        await commit(100)
        before = js.livingProxies()
        await commit(400)
        answer(js.livingProxies() - before)
        """
    )
    assert found <= 5


def test_what_was_read_early_is_opened_and_checked_like_any_other(lab: Lab):
    found = lab.run(
        """
        from py_memory.browser.indexeddb import IndexedDBStore
        from py_memory.browser.owner import Owner

        async def early(change):
            store = IndexedDBStore(NAME)
            await store._connect(create=False)
            meta = await store.meta()
            batches = [batch async for batch in store.batches(await store.count())]
            await store.close()
            change(batches)
            found = to_js({"meta": meta}, dict_converter=js.Object.fromEntries)
            found.batches = to_js(batches)
            return js.Promise.resolve(found)

        async def opened(promise):
            try:
                owner = await Owner.open(NAME, early=promise, passphrase=OLD)
            except PyMemoryError as error:
                return error.code
            shown = await owner.run(lambda one: len(one.timeline("u_1")))
            await owner.close()
            return shown

        def flip(batches):
            batches[0][2][100] ^= 1

        memory, session = await filled(3)
        await memory.close()
        fine, damaged = await early(lambda _: None), await early(flip)
        answer([await opened(fine), await opened(damaged), await opened(None)])
        """
    )
    assert found == [3, "corrupt_image", 3]


def test_what_can_be_read_of_a_damaged_sealed_memory_is_saved_and_stays_sealed(lab: Lab):
    """A page that does not open counts as missing; the rest comes back, sealed as before."""
    found = lab.run(
        """
        from py_memory.browser import recover
        memory, session = await filled(300)
        await memory.close()
        pages = (await stored.stored(NAME))[0]
        bad = sorted(pages)[len(pages) // 2]
        record = bytearray(pages[bad])
        record[-1] ^= 1
        await stored.change(NAME, pages={bad: bytes(record)})
        refused = [await refusal(), ]
        codes = []
        for wrong in (NEW, None):
            try: await recover(NAME, passphrase=wrong)
            except PyMemoryError as error: codes.append(error.code)
        before = await unfenced()
        image, report = await recover(NAME, passphrase=OLD)
        untouched = before == await unfenced()
        await recover(NAME, passphrase=OLD, replace=True)
        readable = [place for place, one in (await unfenced()).items() if b"fragment".hex() in str(one)]
        again, session = await sealed()
        count = again._owner._memory.database.row("SELECT count(*) FROM fragments")[0]
        works = (await session.remember("one more")).content
        await again.close()
        answer([refused, codes, untouched, report["damage"], count, readable, works, await refusal()])
        """
    )
    refused, codes, untouched, damage, count, readable, works, right = found
    assert refused == [["corrupt_image", "seal"]]
    assert codes == ["wrong_passphrase"] * 2
    assert untouched
    assert damage.get("hole") == 1
    assert 200 <= count <= 300
    assert readable == []
    assert works == "one more"
    assert right == ["ok", None]
