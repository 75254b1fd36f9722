"""Context signatures: the same input gives the same signature, everywhere."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory.errors import InvalidArgument
from py_memory.signature import canonical, context_signature, state_signature
from py_memory.times import to_ms
from tests.unit.helpers import opened, shared_cases

# Made with another program: printf '%s' '<canonical JSON>' | sha256sum
OWN = [
    {
        "canonical": '{"session":"s","state":{"步骤":"地址"},"user":"用户"}',
        "user_id": "用户",
        "session_id": "s",
        "state": {"步骤": "地址"},
        "context_signature": "0ebfd29a71e0437aefa767ff73e037990fd0f120183eca124e595319ddd6a028",
        "state_signature": "972a1a61eaa610072fa85e308d890afc912dcc0701b63d45548a16566cf1ded1",
    },
    {
        "canonical": '{"session":"s_9c4e","state":{"form_valid":true,"step":"address_input"},"user":"u_8a2f",'
        '"window":"2026-05-20T14:22"}',
        "user_id": "u_8a2f",
        "session_id": "s_9c4e",
        "state": {"step": "address_input", "form_valid": True},
        "signature_window": "minute",
        "at": "2026-05-20T14:22:37Z",
        "context_signature": "0dab1edd3e083afdc9df958246d41f4fdd91f7d95317d0e2640401a1bd3fbc5f",
    },
]
BESIDE = shared_cases("memory.json").get("signatures", OWN)


@pytest.mark.parametrize("vector", OWN)
def test_signatures_meet_their_vectors(vector):
    text = vector["canonical"]
    assert canonical(json.loads(text)) == text
    assert hashlib.sha256(text.encode()).hexdigest() == vector["context_signature"]
    meets(vector)


def test_the_vectors_beside_the_checkout_are_met_too():
    for vector in BESIDE:
        meets(vector)


def meets(vector):
    """Show a vector by the functions and by what is remembered."""
    state, window = vector["state"], vector.get("signature_window")
    context = context_signature(
        vector["user_id"], vector["session_id"], state, window, to_ms(vector.get("at", 0), "at")
    ).hex()
    assert context == vector["context_signature"]
    known = state_signature(vector["user_id"], state).hex()
    assert known == vector.get("state_signature", known)
    with opened() as memory:
        session = memory.start_session(vector["user_id"], session_id=vector["session_id"])
        fragment = session.remember("x", state=state, at=vector.get("at"), signature_window=window)
        assert (fragment.context_signature, fragment.state_signature) == (context, known)


def test_the_canonical_form_sorts_keys_and_normalises_text():
    assert canonical({"b": 1, "a": {"d": [1, 2.0, True, None], "c": "e\u0301"}}) == (
        '{"a":{"c":"é","d":[1,2,true,null]},"b":1}'
    )


def test_composed_and_decomposed_text_and_one_and_one_point_zero_are_the_same_state():
    assert state_signature("u", {"café": 1}) == state_signature("u", {"cafe\u0301": 1.0})


@pytest.mark.parametrize(
    ("window", "same", "other"),
    [
        ("minute", "2026-05-20T14:22:00Z", "2026-05-20T14:23:00Z"),
        ("hour", "2026-05-20T14:59:59Z", "2026-05-20T15:00:00Z"),
        ("day", "2026-05-20T00:00:00Z", "2026-05-21T00:00:00Z"),
    ],
)
def test_a_window_cuts_the_time(window, same, other):
    def made(at):
        return context_signature("u", "s", {}, window, to_ms(at, "at"))

    assert made("2026-05-20T14:22:37Z") == made(same) != made(other)


def test_without_a_window_time_does_not_matter():
    assert context_signature("u", "s", {"a": 1}, None, 0) == context_signature(
        "u", "s", {"a": 1}, None, 10**12
    )


def test_an_unknown_window_is_refused():
    with opened() as memory:
        session = memory.start_session("u_1")
        for window in ("week", "", 5, ["day"]):
            with pytest.raises(InvalidArgument):
                session.remember("x", signature_window=window)
            with pytest.raises(InvalidArgument):
                session.recall("x", state={}, signature_window=window)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
@settings(max_examples=40)
def test_the_order_of_keys_never_matters(state):
    turned = dict(reversed(state.items()))
    assert state_signature("u", state) == state_signature("u", turned)
    assert context_signature("u", "s", state) != context_signature("u2", "s", state)
    assert context_signature("u", "s", state) != context_signature("u", "s2", state)
