"""English stems: irregular forms to their base, then Porter's algorithm (Program 14(3), 1980)."""

from functools import lru_cache

_IRREGULAR = {
    form: base
    for line in """
    be am is are was were been being; have has had having; do does did done doing
    go goes went gone going; say said; make made making; take took taken taking; come came coming
    see saw seen; know knew known; get got gotten getting; give gave given giving; find found
    think thought; tell told; become became; leave left leaving; feel felt; bring brought
    begin began begun beginning; keep kept; hold held; write wrote written writing; stand stood
    hear heard; let letting; mean meant; set setting; meet met; run ran running; pay paid
    sit sat sitting; speak spoke spoken; lie lay lain; lead led; read; grow grew grown
    lose lost losing; fall fell fallen; send sent; build built; understand understood
    draw drew drawn; break broke broken; spend spent; cut cutting; rise rose risen
    drive drove driven driving; buy bought; wear wore worn; choose chose chosen choosing
    eat ate eaten; drink drank drunk; sing sang sung; swim swam swum swimming; fly flew flown flies
    teach taught; catch caught; fight fought; seek sought; sell sold; sleep slept; win won winning
    throw threw thrown; forget forgot forgotten; ride rode ridden; shake shook shaken; steal stole
    hide hid hidden; bite bit bitten; blow blew blown; freeze froze frozen; wake woke woken
    tear tore torn; swear swore sworn; bend bent; lend lent; deal dealt; dig dug; feed fed
    hang hung; hit hitting; hurt; put putting; quit quitting; ring rang rung; shoot shot; shut
    sink sank sunk; slide slid; spread; stick stuck; strike struck; sweep swept; light lit
    child children; man men; woman women; person people; foot feet; tooth teeth; mouse mice
    goose geese; life lives; wife wives; knife knives; leaf leaves; half halves; wolf wolves
    shelf shelves; self selves; good better best; bad worse worst; far further furthest
    colour color colors colours; favourite favorite favorites favourites; grey gray
    """.replace("\n", ";").split(";")
    if line.strip()
    for base, *forms in [line.split()]
    for form in forms
}

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def _shape(word: str) -> str:
    out: list[str] = []
    for i, char in enumerate(word):
        vowel = char in "aeiou" or (char == "y" and i > 0 and out[i - 1] == "c")
        out.append("v" if vowel else "c")
    return "".join(out)


def _measure(word: str) -> int:
    """Return Porter's m: how often a vowel run is followed by a consonant run."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_cvc(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; what is not plain English letters stays as it is."""
    word = _IRREGULAR.get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return _step_5(_step_4(_step_3(_step_2(_step_1(word)))))


def _step_1(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) > 0 else word
    else:
        for suffix in ("ed", "ing"):
            if word.endswith(suffix) and _has_vowel(word[: -len(suffix)]):
                word = _mended(word[: -len(suffix)])
                break
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _mended(word: str) -> str:
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        return word[:-1]
    if _measure(word) == 1 and _ends_cvc(word):
        return word + "e"
    return word


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, ending in rules:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + ending if _measure(rest) > 0 else word
    return word


def _step_2(word: str) -> str:
    return _replaced(word, _STEP_2)


def _step_3(word: str) -> str:
    return _replaced(word, _STEP_3)


def _step_4(word: str) -> str:
    if word.endswith("ion") and word[-4:-3] in ("s", "t") and _measure(word[:-3]) > 1:
        return word[:-3]
    for suffix in sorted(_STEP_4, key=len, reverse=True):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest if _measure(rest) > 1 else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _ends_cvc(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
