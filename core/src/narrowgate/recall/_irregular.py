"""Irregular English forms, which no suffix stemmer can bring together."""

from __future__ import annotations

from typing import Final


def _forms(lines: str) -> dict[str, str]:
    groups = [group.split() for group in lines.split(";")]
    return {form: group[0] for group in groups for form in group[1:]}


IRREGULAR: Final = _forms(
    """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began begun; bend bent;
    bind bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build
    built; burn burnt; buy bought; catch caught; choose chose chosen; come came; creep crept; deal dealt; dig dug; draw
    drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel
    felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten;
    forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go goes went gone; grow grew grown; hang
    hung; hear heard; hide hid hidden; hold held; keep kept; know knew known; lead led; learn learnt; leave left; lend
    lent; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run
    ran; say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken; shine shone; shoot shot; shrink
    shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; spend spent;
    spin spun; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn; sweep swept;
    swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought; throw threw
    thrown; understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; write wrote
    written;
    child children; man men; woman women; person people; foot feet; tooth teeth; mouse mice; goose geese; wife wives;
    knife knives; shelf shelves; wolf wolves
    """
)
"""Form -> base form. Left out where the form is a common word of its own or of another verb ("wound", "lives", "leaves")."""
