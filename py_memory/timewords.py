"""Time words in a query, English and Chinese, become ranges in the user's zone.

`last Wednesday`, `three days ago`, `in May 2024`, `上周三`, `昨天下午`, `2024年5月`, `五一前后`: each gives a
range of epoch milliseconds and the place in the query where it stands. A word that people use in
two ways says so in `ambiguous`, and takes the reading that lies nearer.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from py_memory.times import DAY, HOUR, MINUTE, Zones

_NUMBERS = {
    word: number
    for number, words in enumerate(
        "zero|one a an 一|two couple 二 两|three few 三|four 四|five 五|six 六|seven 七|eight 八|nine 九"
        "|ten 十|eleven 十一|twelve 十二".split("|")
    )
    for word in words.split()
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug"
        "|september sep sept|october oct|november nov|december dec".split("|"),
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        "monday mon 一|tuesday tue tues 二|wednesday wed 三|thursday thu thurs 四|friday fri 五"
        "|saturday sat 六|sunday sun 日 天".split("|")
    )
    for name in names.split()
}
_PARTS = {
    "morning": (5, 12), "noon": (11, 14), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 28),
    "凌晨": (0, 6), "早上": (5, 12), "上午": (5, 12), "中午": (11, 14), "下午": (12, 18), "傍晚": (17, 20),
    "晚上": (18, 28), "晚": (18, 28),
}  # fmt: skip
# Days of the year that people name, each with how far "around" reaches.
_FEASTS = {
    "元旦": (1, 1), "情人节": (2, 14), "五一": (5, 1), "劳动节": (5, 1), "六一": (6, 1), "儿童节": (6, 1),
    "十一": (10, 1), "国庆": (10, 1), "国庆节": (10, 1), "双十一": (11, 11), "圣诞": (12, 25),
    "圣诞节": (12, 25),
    "new year's day": (1, 1), "new year": (1, 1), "valentine's day": (2, 14), "halloween": (10, 31),
    "christmas": (12, 25), "christmas eve": (12, 24), "new year's eve": (12, 31),
}  # fmt: skip
_AROUND_DAYS = 5

_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(name for name in sorted(_WEEKDAYS, key=len, reverse=True) if name.isascii())
_NUMBER = "|".join(name for name in sorted(_NUMBERS, key=len, reverse=True) if name.isascii())
_HAN_NUMBER = "[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九]|\\d{1,3}"
_PART = "|".join(name for name in _PARTS if name.isascii())
_HAN_PART = "凌晨|早上|上午|中午|下午|傍晚|晚上|晚"
_FEAST = "|".join(re.escape(name) for name in sorted(_FEASTS, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class TimeWord:
    """A time named in a query: from `start` up to `end` (epoch ms), where it stands, in doubt or not."""

    start: int
    end: int
    begins: int
    ends: int
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class _Now:
    """The present in the user's zone."""

    today: date
    zone: str
    zones: Zones

    def at(self, day: date, hour: int = 0) -> int:
        """Return the epoch ms of an hour of a local day; where the clock jumps, of what it shows."""
        naive = (day - date(1970, 1, 1)).days * DAY + hour * HOUR
        guess = naive - self.zones(self.zone, naive) * MINUTE
        return naive - self.zones(self.zone, guess) * MINUTE


Span = tuple[date, date, bool]
"""First day, the day after the last, and whether the word is used in two ways."""

Reading = Callable[[re.Match[str], date], Span | None]
"""Reads a match on a day."""


def time_words(query: str, now: int, zone: str, zones: Zones) -> list[TimeWord]:
    """Return the times that a query names, in order; where two overlap, the longer one."""
    today = date(1970, 1, 1) + timedelta(milliseconds=now + zones(zone, now) * MINUTE)
    present = _Now(today, zone, zones)
    found: list[TimeWord] = []
    for begins, ends, span, part in _matches(query.lower(), today):
        first, after, ambiguous = span
        start, end = present.at(first), present.at(after)
        if part and after - first == timedelta(days=1):
            low, high = _PARTS[part]
            start, end = present.at(first, low), present.at(first, high)
        if start < end:
            found.append(TimeWord(start, end, begins, ends, ambiguous))
    found.sort(key=lambda word: (word.begins - word.ends, word.begins))
    kept: list[TimeWord] = []
    for word in found:
        if all(word.ends <= other.begins or word.begins >= other.ends for other in kept):
            kept.append(word)
    return sorted(kept, key=lambda word: word.begins)


def without(query: str, words: list[TimeWord]) -> str:
    """Return the query less its time words."""
    for word in reversed(words):
        query = f"{query[: word.begins]} {query[word.ends :]}"
    return query


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _matches(text: str, today: date) -> Iterator[tuple[int, int, Span, str | None]]:
    for triggers, pattern, reading in _READINGS:
        # Compiling a pattern takes longer than a search; most queries need none.
        if not any(trigger in text for trigger in triggers):
            continue
        for match in _compiled(pattern).finditer(text):
            try:
                span = reading(match, today)
            except (ValueError, OverflowError):
                continue
            if span is not None:
                groups = match.groupdict()
                yield match.start(), match.end(), span, groups.get("part")


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    if word in _NUMBERS:
        return _NUMBERS[word]
    tens, _, ones = word.partition("十")
    return _NUMBERS.get(tens, 1) * 10 + _NUMBERS.get(ones, 0)


def _one(day: date, ambiguous: bool = False) -> Span:
    return day, day + timedelta(days=1), ambiguous


def _month_of(year: int, month: int) -> Span:
    after = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), after, False


def _shifted(today: date, months: int) -> tuple[int, int]:
    number = today.year * 12 + today.month - 1 + months
    return number // 12, number % 12 + 1


def _week_of(today: date, weeks: int) -> Span:
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    return monday, monday + timedelta(days=7), False


def _latest(today: date, month: int, day: int) -> date:
    this = date(today.year, month, day)
    return this if this <= today else date(today.year - 1, month, day)


def _iso(match: re.Match[str], _: date) -> Span:
    year, month, day = match["y"], match["m"], match["d"]
    return _one(date(int(year), int(month), int(day))) if day else _month_of(int(year), int(month))


_YEARS_BACK = {"last year": 1, "this year": 0, "去": 1, "今": 0, "前": 2}


def _year_said(word: str, today: date) -> int:
    """Return the year that stands beside a month or a feast, named or told from today."""
    return today.year - _YEARS_BACK[word] if word in _YEARS_BACK else int(word)


def _named_month(match: re.Match[str], today: date) -> Span | None:
    month = _MONTHS[match["m"]]
    year, day = match["y"], match["d"]
    if day:
        number = int(day)
        if not year:
            return _one(_latest(today, month, number))
        return _one(date(_year_said(year, today), month, number))
    if year:
        return _month_of(_year_said(year, today), month)
    # "may" and "march" alone are usually no months.
    return None


def _in_month(match: re.Match[str], today: date) -> Span:
    month = _MONTHS[match["m"]]
    return _month_of(today.year if month <= today.month else today.year - 1, month)


def _year(match: re.Match[str], _: date) -> Span:
    return date(int(match["y"]), 1, 1), date(int(match["y"]) + 1, 1, 1), False


def _ago(match: re.Match[str], today: date) -> Span:
    count, unit = _number(match["n"]), match["unit"]
    if unit[0] in "d天日":
        return _one(today - timedelta(days=count))
    if unit[0] in "w周星礼":
        day = today - timedelta(weeks=count)
        return day - timedelta(days=3), day + timedelta(days=4), False
    if unit[0] in "m个月":
        return _month_of(*_shifted(today, -count))
    return date(today.year - count, 1, 1), date(today.year - count + 1, 1, 1), False


def _past(match: re.Match[str], today: date) -> Span:
    count, unit = _number(match["n"]), match["unit"]
    days = {"d": 1, "天": 1, "日": 1, "w": 7, "周": 7, "星": 7, "礼": 7, "m": 30, "个": 30, "月": 30}
    length = count * days.get(unit[0], 365)
    return today - timedelta(days=length), today + timedelta(days=1), False


_DAYS = {
    "today": 0, "tonight": 0, "this": 0, "yesterday": -1, "last night": -1,
    "the day before yesterday": -2, "day before yesterday": -2, "今天": 0, "今日": 0, "今": 0,
    "昨天": -1, "昨日": -1, "昨": -1, "前天": -2, "前日": -2, "大前天": -3,
}  # fmt: skip


def _day(match: re.Match[str], today: date) -> Span:
    return _one(today + timedelta(days=_DAYS[match["day"]]))


def _weekday(match: re.Match[str], today: date) -> Span:
    """`last Wednesday` is the latest one gone by; in the week after it, some mean the week before."""
    wanted = _WEEKDAYS[match["w"]]
    back = (today.weekday() - wanted) % 7 or 7
    said = match["which"] or ""
    if said.startswith("this"):
        return _one(today - timedelta(days=today.weekday()) + timedelta(days=wanted))
    return _one(
        today - timedelta(days=back), ambiguous=said.startswith("last") and back < today.weekday() + 1
    )


def _han_weekday(match: re.Match[str], today: date) -> Span:
    wanted = _WEEKDAYS[match["w"]]
    said = match["which"] or ""
    monday = today - timedelta(days=today.weekday())
    if said.startswith("上"):
        return _one(monday + timedelta(weeks=-said.count("上"), days=wanted))
    if said:
        return _one(monday + timedelta(days=wanted))
    return _one(today - timedelta(days=(today.weekday() - wanted) % 7), ambiguous=True)


def _calendar(match: re.Match[str], today: date) -> Span:
    which, unit = match["which"], match["unit"]
    back = which.count("上") if "上" in which else int(which in {"last", "去", "past", "previous"})
    if which == "前":
        back = 2
    if unit in {"weekend", "周末"}:
        saturday = today - timedelta(days=(today.weekday() - 5) % 7 or 7)
        if not back:
            saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
        return saturday, saturday + timedelta(days=2), False
    if unit[0] in "w周星礼":
        return _week_of(today, -back)
    if unit[0] in "m月":
        return _month_of(*_shifted(today, -back))
    return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1), False


def _han_date(match: re.Match[str], today: date) -> Span:
    year, month, day = match["y"], _number(match["m"]), match["d"]
    if day:
        number = _number(day)
        if not year:
            return _one(_latest(today, month, number))
        return _one(date(_year_said(year, today), month, number))
    if year:
        return _month_of(_year_said(year, today), month)
    return _month_of(today.year if month <= today.month else today.year - 1, month)


def _feast(match: re.Match[str], today: date) -> Span:
    year = match["y"] or match["y2"]
    month, day = _FEASTS[match["feast"]]
    found = date(_year_said(year, today), month, day) if year else _latest(today, month, day)
    if match["around"] or match["before"]:
        reach = timedelta(days=_AROUND_DAYS)
        return found - reach, found + reach + timedelta(days=1), False
    return _one(found)


_ORDINAL = "(?:st|nd|rd|th)?"
_YEAR = "(?:19|20)\\d\\d"
_SAID = f"{_YEAR}|last year|this year"
_READINGS: tuple[tuple[tuple[str, ...], str, Reading], ...] = (
    (("19", "20"), rf"(?<!\d)(?P<y>{_YEAR})[-/.](?P<m>\d{{1,2}})(?:[-/.](?P<d>\d{{1,2}}))?(?!\d)", _iso),
    (
        tuple(_MONTHS),
        rf"\b(?:(?P<d>\d{{1,2}}){_ORDINAL}\s+(?:of\s+)?)?(?P<m>{_MONTH})\b\.?(?:,?\s*(?P<y>{_SAID}))?",
        _named_month,
    ),
    (
        tuple(_MONTHS),
        rf"\b(?P<m>{_MONTH})\.?\s+(?P<d>\d{{1,2}}){_ORDINAL}\b(?:,?\s*(?P<y>{_SAID}))?",
        _named_month,
    ),
    (tuple(_MONTHS), rf"\b(?:in|during|since|of|last|this)\s+(?P<m>{_MONTH})\b(?!\s*\d)", _in_month),
    (("19", "20"), rf"\b(?:in|during|of|year)\s+(?P<y>{_YEAR})\b", _year),
    (("年",), rf"(?<!\d)(?P<y>{_YEAR})\s*年(?!\s*\d|[一二三四五六七八九十])", _year),
    (
        (" ago",),
        rf"\b(?P<n>{_NUMBER}|\d{{1,3}})(?:\s+of)?\s+(?P<unit>days?|weeks?|months?|years?)\s+ago\b",
        _ago,
    ),
    (
        ("last", "past", "previous"),
        rf"\b(?:last|past|previous)\s+(?P<n>{_NUMBER}|\d{{1,3}})\s+(?P<unit>days|weeks|months|years)\b",
        _past,
    ),
    (
        ("yesterday", "today", "tonight", "last night", "this "),
        (
            rf"\b(?P<day>the day before yesterday|day before yesterday|yesterday|today|tonight|last night"
            rf"|this(?=\s+(?:{_PART})\b))(?:\s+(?P<part>{_PART}))?\b"
        ),
        _day,
    ),
    (
        ("last ", "this ", "past ", "on "),
        rf"\b(?:(?P<which>last|this|past|on)\s+)(?P<w>{_WEEKDAY})\b(?:\s+(?P<part>{_PART}))?",
        _weekday,
    ),
    (
        ("last ", "this ", "past ", "previous "),
        r"\b(?P<which>last|this|past|previous)\s+(?P<unit>weekend|week|month|year)\b",
        _calendar,
    ),
    (
        ("月",),
        (
            rf"(?:(?P<y>{_YEAR}|[去今前])\s*年\s*)?(?P<m>1[0-2]|0?[1-9]|十[一二]|[一二三四五六七八九十])\s*月"
            rf"(?:\s*(?P<d>3[01]|[12]\d|0?[1-9]|[一二三]?十?[一二三四五六七八九十])\s*[日号])?(?![份]?以?前)"
        ),
        _han_date,
    ),
    (
        ("天", "日", "昨", "今"),
        rf"(?P<day>大前天|前天|昨天|今天|昨日|今日|前日|昨(?=晚)|今(?=[晚]))(?P<part>{_HAN_PART})?",
        _day,
    ),
    (("前",), rf"(?P<n>{_HAN_NUMBER})\s*(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)(?:之|以)?前", _ago),
    (
        ("过去", "近"),
        rf"(?:过去|最近|近)(?:的)?\s*(?P<n>{_HAN_NUMBER})\s*(?P<unit>天|周|个?星期|个月|年)",
        _past,
    ),
    (
        ("周", "星期", "礼拜"),
        rf"(?P<which>上上|上|这|本)?个?(?:周|星期|礼拜)(?P<w>[一二三四五六日天])(?P<part>{_HAN_PART})?",
        _han_weekday,
    ),
    (
        ("周", "星期", "礼拜", "月"),
        r"(?P<which>上上|上|这|本)个?(?P<unit>周末|周|星期|礼拜|月)(?![一二三四五六日天])",
        _calendar,
    ),
    (("年",), r"(?P<which>去|今|前)(?P<unit>年)", _calendar),
    (
        tuple(_FEASTS),
        (
            rf"(?P<before>around\s+)?(?:(?P<y>{_YEAR}(?=\s*年?)|[去今前](?=年))\s*年?\s*(?:的\s*)?)?(?P<feast>{_FEAST})(?:节|假期)?"
            rf"(?P<around>前后|左右|期间)?(?:,?\s*(?P<y2>{_SAID})\b)?"
        ),
        _feast,
    ),
)
