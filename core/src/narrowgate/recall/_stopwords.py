"""Words and characters that say nothing about what is asked: left out of queries, kept in the index."""

from __future__ import annotations

from typing import Final


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


ENGLISH: Final = _words(
    """
    a about above after again against all also although am among an and any are as at
    be because been before being below between both but by can could
    did do does doing done down during each either else ever few for from further
    had has have having he her here hers herself him himself his how however
    i if in into is it its itself just let lets many me might more most much must my myself
    neither no nor not now of off on once only onto or other our ours ourselves out over own
    please quite rather really same shall she should since so some such
    than that the their theirs them themselves then there these they this those though through thus to too
    under until unless up upon us very was we were what whatever when whenever where whether which while
    who whom whose why will with within without would yet you your yours yourself yourselves
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mightnt mustnt neednt shant shouldnt wasnt werent wont
    wouldnt
    happen kind thing way
    d e g ll m re s t ve
    """
)
"""English closed-class words; contractions as the analyser leaves them ("don't" is indexed as "dont"); the single letters
that are left of "e.g.", "i.e." and clitics; and the few nouns and verbs that questions are framed with."""

HAN_FUNCTION: Final = frozenset(
    "的了着著吗嗎呢吧啊呀嘛么麼之们們个個是有在"  # particles, suffixes, the measure word of all work, "be", "have", "at"
    "我你您他她它这這那什怎哪谁誰几幾其"  # pronouns, question words
    "和与與及或而但也都就还還很不可能把被对對从從到为為以于於来來一"  # conjunctions, adverbs, prepositions, auxiliaries
)
"""Chinese function characters. Left out of queries as single characters only: the bigrams that hold them stay."""
