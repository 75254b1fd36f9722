"""Words that tell little about what a query looks for; the index keeps them all the same."""

_ENGLISH = frozenset(
    """
    a about above after again against all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could couldn't did didn't do does
    doesn't doing don't down during each few for from further had hadn't has hasn't have haven't
    having he her here hers herself him himself his how i i'm i've i'd i'll if in into is isn't it
    it's its itself just let me might more most my myself no nor not now of off on once only or
    other ought our ours ourselves out over own same she should shouldn't so some such than that
    the their theirs them themselves then there these they this those through to too under until
    up upon us very was wasn't we were weren't what when where which while who whom whose why will
    with won't would wouldn't you your yours yourself yourselves s t d ll m re ve may
    """.split()
)

# Question words, pronouns and particles; as pairs, the way queries are cut.
_CHINESE = frozenset(
    """
    什么 怎么 怎样 哪里 哪个 哪些 哪儿 多少 为什 几个 如何 是否 我们 你们 他们 她们 它们 自己
    这个 那个 这些 那些 一下 有没 没有 的时 时候 可以 是什 么样 有什 了什 过什 吗？ 请问 告诉 诉我
    """.split()
)


_CHINESE_CHARACTERS = frozenset(
    "的了是我你您他她它们这那有在和就不人都一个上下也很到说要去会着没看好自己吗呢吧啊呀哦嗯嘛什么怎样哪谁几多少"
    "时候可以对为与及或被把让给从向等能还再又才最更太真只其之以但而如果因所然后里中来过得地年月日天些每次种想"
)

# What people ask with when they ask for a time and nothing else.
_ASKING = frozenset(
    """
    say said tell told talk mention discuss speak happen remember chat do did write wrote anything
    something everything thing happened mentioned discussed talked going
    我说 说过 说了 过什 做过 做了 我做 了些 些什 聊过 聊了 我聊 提到 到过 提过 我提 讲过 讲了 我讲 发生
    生了 记得 你记 还记 得我 了哪 哪些 过哪 干了 我干 事情 么事 什么 聊什 说什 做什 哪些 了什
    """.split()
)


def is_asking(term: str) -> bool:
    """Tell whether a word of a query only asks for what was said or done."""
    return is_stop(term) or term.strip("*") in _ASKING


def is_stop(term: str) -> bool:
    """Tell whether a word, as it stands in a query, says nothing of its subject."""
    return term in _ENGLISH or term in _CHINESE or term in _CHINESE_CHARACTERS
