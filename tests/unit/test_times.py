"""Times: what callers may give, what is given back; the clock and the time zone are ports."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_memory import Memory
from py_memory.errors import InvalidArgument
from py_memory.times import iso, local, system_zones, to_ms
from tests.unit.helpers import START, opened

FIRST = -62_135_596_800_000
LAST = 253_402_300_799_999


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (0, 0),
        (1_779_287_357_000, 1_779_287_357_000),
        (1_779_287_357_000.9, 1_779_287_357_000),
        ("2026-05-20T14:29:17Z", 1_779_287_357_000),
        ("2026-05-20T14:29:17", 1_779_287_357_000),
        ("2026-05-20 14:29:17", 1_779_287_357_000),
        ("2026-05-20T22:29:17+08:00", 1_779_287_357_000),
        (" 2026-05-20T14:29:17.000Z ", 1_779_287_357_000),
        ("1969-12-31T23:59:59.999Z", -1),
        (datetime(2026, 5, 20, 14, 29, 17), 1_779_287_357_000),  # noqa: DTZ001 - on purpose
        (datetime(2026, 5, 20, 14, 29, 17, tzinfo=UTC), 1_779_287_357_000),
        (datetime(2026, 5, 20, 7, 29, 17, tzinfo=timezone(timedelta(hours=-7))), 1_779_287_357_000),
    ],
)
def test_a_time_is_read_and_without_an_offset_it_is_utc(value, ms):
    assert to_ms(value, "at") == ms


@pytest.mark.parametrize(
    "value",
    [
        None, True, "", "yesterday", "2026-13-01", "2026-05-20T25:00", [], {}, b"2026",
        float("nan"), float("inf"), FIRST - 1, LAST + 1, 10**30, -(10**30), 1e300,
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_by_name_and_without_its_value(value):
    with pytest.raises(InvalidArgument) as caught:
        to_ms(value, "since")
    assert caught.value.details == {"option": "since"}
    assert "yesterday" not in str(caught.value)


@given(st.integers(FIRST, LAST))
@settings(max_examples=60)
def test_a_time_written_is_the_time_read(ms):
    assert to_ms(iso(ms), "at") == ms


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
@pytest.mark.parametrize("offset", [-720, 840])
def test_the_first_and_the_last_time_can_be_remembered_and_cited_in_any_zone(at, offset):
    with opened(zones=lambda _name, _at: offset, time_zone="Far/Away") as memory:
        session = memory.start_session("u_1")
        kept = session.remember("the edge of time", at=at)
        (hit,) = session.recall("edge")
        assert hit.fragment.id == kept.id
        assert hit.fragment.happened_at == iso(to_ms(at, "at"))
        assert at[:4] in hit.cite


def test_the_clock_is_a_port_and_decides_what_now_is():
    with opened(clock=lambda: 1_600_000_000_000) as memory:
        fragment = memory.start_session("u_1").remember("hello")
    assert fragment.stored_at == fragment.happened_at == "2020-09-13T12:26:40.000Z"


def test_a_clock_that_gives_fractions_is_cut_to_whole_milliseconds():
    with opened(clock=lambda: 1_600_000_000_000.75) as memory:
        session = memory.start_session("u_1")
        fragment = session.remember("hello", ttl_seconds=60)
        assert fragment.stored_at == "2020-09-13T12:26:40.000Z"
        assert session.recall("hello")[0].fragment.id == fragment.id


def zones(name, at):
    """Two hours ahead from May on, one before: a zone with summer time, without a zone database."""
    if name == "UTC":
        return 0
    if name != "Test/Summer":
        message = "unknown"
        raise InvalidArgument(message, option="time_zone")
    return 120 if at >= to_ms("2026-05-01", "at") else 60


def test_the_time_zone_is_a_port_and_changes_how_times_are_cited_and_nothing_else():
    with opened(zones=zones, time_zone="Test/Summer") as memory:
        session = memory.start_session("u_1")
        session.remember("winter walk", at="2026-01-10T23:30:00Z")
        session.remember("summer swim", at="2026-06-10T23:30:00Z")
        winter, summer = memory.search("u_1", "winter")[0], memory.search("u_1", "summer")[0]
        assert "2026-01-11 00:30" in winter.cite
        assert "2026-06-11 01:30" in summer.cite
        assert winter.fragment.happened_at == "2026-01-10T23:30:00.000Z"
        utc = memory.search("u_1", "winter", time_zone="UTC")[0]
        assert "2026-01-10 23:30" in utc.cite
        assert utc.score == winter.score


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "../etc/passwd", "\x00", 5, ["UTC"]])
def test_an_unknown_time_zone_is_refused_when_opening_and_when_asking(zone):
    with pytest.raises(InvalidArgument) as caught:
        Memory.open(":memory:", time_zone=zone)
    assert caught.value.details["option"] == "time_zone"
    with opened() as memory:
        with pytest.raises(InvalidArgument):
            memory.search("u_1", "nothing is stored", time_zone=zone)
        with pytest.raises(InvalidArgument):
            memory.start_session("u_1", time_zone=zone)


def test_a_sessions_own_time_zone_is_the_one_it_cites_in():
    with opened(zones=zones) as memory:
        session = memory.start_session("u_1", session_id="s_1", time_zone="Test/Summer")
        session.remember("summer swim", at="2026-06-10T23:30:00Z")
        assert "2026-06-11 01:30" in session.recall("swim")[0].cite
        assert "2026-06-11 01:30" in memory.session("s_1").recall("swim")[0].cite
        assert "2026-06-10 23:30" in memory.search("u_1", "swim")[0].cite


def test_system_zones_know_summer_time():
    if "Europe/Paris" not in _known_zones():
        assert system_zones("UTC", START) == 0
        return
    assert system_zones("Europe/Paris", to_ms("2026-01-01", "at")) == 60
    assert system_zones("Europe/Paris", to_ms("2026-07-01", "at")) == 120
    assert local(to_ms("2026-07-01T22:30:00Z", "at"), "Europe/Paris", system_zones) == "2026-07-02 00:30"


def _known_zones():
    import zoneinfo

    return zoneinfo.available_timezones()


def test_times_without_an_offset_are_in_the_zone_that_is_named(memories):
    memory = memories(zones=zones)
    session = memory.start_session("u_1")
    session.remember("before midnight", at="2026-06-09T21:59:59Z")
    session.remember("after midnight", at="2026-06-09T22:00:00Z")
    day = {"since": "2026-06-10", "until": "2026-06-11T00:00:00", "time_zone": "Test/Summer"}
    for found in (memory.timeline("u_1", **day), memory.search("u_1", "midnight", **day)):
        assert [getattr(one, "fragment", one).content for one in found] == ["after midnight"]
    utc = {"since": "2026-06-10", "until": "2026-06-11"}
    assert memory.timeline("u_1", **utc) == []
    exact = {"since": "2026-06-09T22:00:00Z", "until": 1_790_000_000_000, "time_zone": "Test/Summer"}
    assert len(memory.timeline("u_1", **exact)) == 1
