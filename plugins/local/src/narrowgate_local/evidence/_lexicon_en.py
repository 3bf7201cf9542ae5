"""English word lists of the evidence model: closed classes and patterns, nothing learned."""

from __future__ import annotations

import re
from typing import Final


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


ASKING: Final = _words(
    "kind type sort name list tell describe explain say said mention mentioned call called give know remember please "
    "happen happened recent currently"
)
"""Words of a question that speak of the asking, not of what is asked (as they are written, lower case)."""

_MONTH: Final = (
    r"jan(?:uary)?|feb(?:ruary)?|march|mar|april|apr|may|june|jun|july|jul|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY: Final = r"mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?"
DATE: Final = re.compile(
    rf"\b(?:1\d{{3}}|20\d\d)s?\b|\b(?:{_MONTH})\b\.?(?=\s*\d)|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\b"
    rf"|\b(?:january|february|april|june|july|august|september|october|november|december)\b|\b(?:{_DAY})\b"
    r"|\b\d{1,2}(?::\d\d)?\s*[ap]\.?m\b|\b\d{1,2}:\d\d\b"
    r"|\b(?:yesterday|today|tonight|tomorrow|ago|recently|lately)\b"
    r"|\b(?:last|next|this|past|coming|previous)\s+(?:\w+\s+)?"
    r"(?:night|week|weekend|month|year|spring|summer|autumn|fall|winter|morning|evening|century|decade|few)\b"
    r"|\bcentury\b|\b(?:in|since|during|until|by)\s+\d{3,4}\b|\bjust (?:started|got|finished|did|went|bought)\b",
    re.IGNORECASE,
)
"""Something that could answer "when?"."""

NUMBER: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?"
    r"|dozens?|twice|thrice|once|several|couple|half|third|quarter|percent)\b",
    re.IGNORECASE,
)
"""Something that could answer "how many?"."""

REASON: Final = re.compile(
    r"\b(?:because|since|due to|owing to|so that|in order to|therefore|thus|hence|reason|caused?|led to|as a result"
    r"|inspired|motivated|wanted to|to (?:help|make|get|avoid|prevent|keep))\b",
    re.IGNORECASE,
)
"""Something that could answer "why?"."""

PLACE: Final = re.compile(
    r"\b(?:in|at|from|near|to|of|on|around|through|across|outside|inside|visited|called)\s+(?:the\s+)?(?-i:[A-Z])"
    r"|\b(?:here|home|beach|park|school|museum|church|city|town|country|street|lake|mountains?|restaurant|caf[eé]|cent(?:er|re)"
    r"|studio|shelter|store|shop|gym|university|hospital|office|north|south|east|west)\b",
    re.IGNORECASE,
)
"""Something that could answer "where?"."""

FIRST_PERSON: Final = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|we|we're|we've|our|us)\b", re.IGNORECASE)
"""The writer speaks of himself."""

FUNCTION: Final = _words(
    """
    a about above after again against ago all already also although always am among an and another any are around as at
    away back be because been before being below between both but by can cannot could did do does doing done down during
    each either else ever every few for from further had has have having he her here hers herself him himself his how
    however i if in into is it its itself just let lets many may me might mine more most much must my myself neither never
    no nor not now of off often on once one ones only onto or other our ours ourselves out over own per please quite rather
    really same shall she should since so some still such than that the their theirs them themselves then there these they
    this those though through thus to together too under until up upon us very was we were what whatever when whenever where
    whether which while who whom whose why will with within without would yes yet you your yours yourself yourselves
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mightnt mustnt neednt shant shouldnt wasnt werent wont
    wouldnt hes hows ill im ive id theyre theyve thats theres theyd weve whats wheres whos youre youve youd itll shes
    d e g ll m re s t ve gonna wanna got get gets getting like well oh hey hi hello wow yeah yep ok okay thanks thank
    """
)
"""Closed classes, auxiliaries and small talk: no content. Own list: the coefficients depend on it."""

WHEN: Final = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|century|decade|season)\b|\bhow long\b", re.IGNORECASE
)
HOW_MANY: Final = re.compile(
    r"\bhow (?:many|much|old|far|tall|large|big|high|often|fast|deep|heavy)\b"
    r"|\bwhat (?:number|percent(?:age)?|amount|proportion|score)\b",
    re.IGNORECASE,
)
WHERE: Final = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:city|country|state|town|place|location|street|county|region)\b", re.IGNORECASE
)
WHO: Final = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
WHY: Final = re.compile(r"\bwhy\b|\bwhat (?:caused|reasons?|motivated|inspired)\b", re.IGNORECASE)
TYPE_WORD: Final = re.compile(
    r"\b(?:what|which)(?: is the| was the)? (?:year|date|day|month|time|century|decade|season)\b", re.IGNORECASE
)
"""Says what kind of answer is wanted; not to be looked for in the text."""
