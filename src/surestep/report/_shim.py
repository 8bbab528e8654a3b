from surestep.report.words.checks import (
    TITLES,
    check_words,
    noticed_words,
    summary_words,
    test_words,
)


def title(c):
    return TITLES[c.code]


def says(c):
    return check_words(c)


def aside(c):
    return " ".join(x for x in (test_words(c), noticed_words(c)) if x)


def summary(cs):
    return summary_words(cs)


def failed(cs):
    return [c for c in cs if c.outcome == "failed"]


AG = {
    "markov-next-state": "markov",
    "markov-reward": "markov",
    "model-returns": "markov",
    "drift-next-state": "markov",
    "drift-reward": "markov",
    "behavior-memory": "no-hidden-causes",
}


def against(c):
    return AG.get(c.code)
