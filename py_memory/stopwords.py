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


def is_stop(term: str) -> bool:
    """Tell whether a word, as it stands in a query, says nothing of its subject."""
    return term in _ENGLISH or term in _CHINESE
