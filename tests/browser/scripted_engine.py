"""Stands in for py_memory.browser.worker in tests of the page side: does what each call's arguments say."""

import asyncio
import json
import os
import sys

import js
from pyodide.ffi import create_proxy, to_js

STATE = {"generation": 0}
SEEN = []
TASKS = []


def storage():
    return {
        "mode": "best-effort",
        "persisted": False,
        "usage": 10,
        "quota": 100,
        "generation": STATE["generation"],
    }


async def dispatch(method, args_json, binary, *_):
    args = json.loads(args_json)
    parts = [part.to_bytes() for part in binary]
    told = args.get("metadata", {})
    SEEN.append(method)
    if "sleep" in told:
        await asyncio.sleep(told["sleep"])
    die(told)
    if "refuse" in told:
        return to_js([False, json.dumps(told["refuse"]), [], None, None])
    if method == "open":
        return answer({"storage": storage(), "term": 1, "born": 1})
    if method == "start_session":
        return answer({"id": args.get("session_id", "s_1"), "user_id": args["user_id"], "skill": "sk"})
    if method == "session.remember":
        STATE["generation"] += 1
        change = {"verb": "remember", "user_id": "u", "session_id": args["session_id"], "ids": ["mf_1"]}
        return answer({"id": f"mf_{STATE['generation']}", "args": args_json}, parts, change=change)
    if method == "session.remember_many":
        return answer([{"id": f"mf_{n}", "args": args_json} for n in range(len(args["items"]))], parts)
    if method in {"find", "timeline", "trash"}:
        return answer({"items": [{"args": args_json}], "cursor": "next"})
    if method in {"forget", "restore"}:
        return answer({"count": 1, "ids": ["mf_1"]})
    if method == "session.recall":
        hit = {"fragment": {"session_id": "s", "metadata": {"own_key": 1}}, "why": {"memory_score": 1}}
        return answer([{**hit, "args": args_json, "seen": len(SEEN)}])
    if method in {"export_image", "export_raw"}:
        return answer({"$binary": 0}, [b"SQLite"])
    if method == "export_json":
        return answer('{"format": "py-memory"}')
    if method == "import_image":
        return answer({"args": args_json}, parts)
    if method in {"import_json", "search", "metrics", "check"}:
        return answer({"args": args_json, "seen": SEEN})
    return answer(None)


def answer(result, parts=(), *, change=None):
    """Give back the result and, under `echo`, the bytes that came."""
    if parts and isinstance(result, dict) and "$binary" not in result:
        result["echo"] = [{"$binary": number} for number in range(len(parts))]
    news = (json.dumps(storage()), json.dumps(change)) if change else (None, None)
    return to_js([True, json.dumps(result), list(parts), *news])


def die(told):
    """End in one of the ways in which a runtime or a worker can end, or just talk."""
    how = told.get("die")
    secret = told.get("secret")
    if how == "raise":
        raise RuntimeError(secret)
    if how == "close":
        js.close()
    if how == "uncaught":
        js.setTimeout(create_proxy(lambda: {}[secret]), 0)
    if how == "abort":
        os.abort()
    if how == "chatter":
        print(secret)
        print(secret, file=sys.stderr)
        js.console.log(secret)
        js.console.error(secret)
        js.Promise.reject(js.Error.new(secret))
        TASKS.append(asyncio.get_event_loop().create_task(fails(secret)))


async def fails(secret):
    raise RuntimeError(secret)
