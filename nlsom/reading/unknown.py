"""Replies that say there is no answer."""

from __future__ import annotations

import re

from nlsom.reading.clean import clean

_CANNOT = r"""(?:
    can't | can(?:\s?no)t | cant | couldn't | could\s+not
  | (?:am|'m|was|are|is|were)\s+(?:not\s+able|unable)\s+to | unable\s+to
)"""
_TELL = r"""(?:
    tell | say | see\s+enough | determine | answer | know | identify | judge | decide | provide | help
  | assist | confirm | make\s+out | be\s+(?:sure|determined|answered|told|known|identified|inferred|seen|said)
)"""
_UNKNOWN = re.compile(
    rf"""\b(?:
        {_CANNOT} \s+ (?:\w+ly\s+)? {_TELL}
      | (?:do|does|did)(?:n't|nt|\s+not) \s+ (?:\w+ly\s+)?
        (?:know | have\s+(?:enough|sufficient|any\s+information))
      | (?:not | isn't | aren't) \s+ (?:\w+ly\s+)?
        (?:sure | certain | clear | possible\s+to | enough\s+information | visible\s+enough)
      | (?:impossible | hard | difficult) \s+ to \s+ {_TELL}
      | no \s+ (?:idea | clue | answer | way\s+(?:to|of)\s+\w+)
      | (?:insufficient | not\s+enough) \s+ (?:information | data | context | evidence)
      | idk | (?:i'm | i\s+am)\s+sorry | i\s+apologi[sz]e
    )\b""",
    re.I | re.X,
)
_ALONE = re.compile(
    r"""(?:it(?:'s|\s+is)\s+ | that(?:'s|\s+is)\s+ | the\s+answer\s+is\s+ | answer:\s*)?
    (?:unknown | unanswerable | unclear | uncertain | undetermined | indeterminate | not\s+applicable | n/?a
      | maybe | \?+ | no\s+answer | not\s+answerable | none\s+given | ambiguous) \W*""",
    re.I | re.X,
)


def says_unknown(text: str) -> bool:
    """Whether a reply gives no answer: "I don't know", a refusal, "unanswerable", "unclear".

    If such a word is itself an option, use `read_choice` first, which finds that option.
    """
    plain = clean(text)
    return bool(_UNKNOWN.search(plain) or _ALONE.fullmatch(plain))
