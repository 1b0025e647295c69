"""Phrases by which a reply chooses, denies, joins and takes back options.

Patterns for what comes before an option end in `$` and are searched in the text up to it; patterns for what
follows are matched at its end.
"""

from __future__ import annotations

import re

_FLAGS = re.I | re.X

_FILLER = r"""(?:\s*\b(?:
    option | choice | letter | answer | number | the | an?
  | (?:most\s+)?likely | probably | definitely | clearly
)\b)*[\s\W]*"""

_ANSWER = r"""(?:\b(?:
    answer | ans | solution | choice | option | selection | response | pick | correct
    | antwort | réponse | respuesta | risposta | resposta | ответ
)\b | 答案 | 回答 | 答え | 정답)"""

_IS = r"""(?:\s*(?:
    is | was | are | would\s+be | should\s+be | must\s+be | has\s+to\s+be | ist | est | es | è | é
    | 是 | 为 | は
    | : | = | -> | - | →
)(?!\w))+"""

EXPLICIT = re.compile(
    rf"""(?:
        {_ANSWER} ["'\s]* (?:\([^()]*\)\s*)? (?:to\s+(?:the|this)\s+question | here)? {_IS}
      | (?<!might\s)(?<!may\s)(?<!could\s) \b(?:answer|ans)\b\W*
      | 答案 | 选择?
    ) {_FILLER} $""",
    _FLAGS,
)
"""Before an option: "the answer is", "correct:"."""

CORRECTED = re.compile(
    rf"""\b(?:
        wait | (?<![-:=]\s)no | no(?=\s*,) | actually | sorry | i\s+mean | or\s+rather | correction
      | scratch\s+that | on\s+(?:second\s+thoughts? | reflection)
    ) [\s,.:;!-]+
    (?:(?:it's | it\s+is | it\s+must\s+be | that's | i\s+think | i'd\s+say | i\s+meant
      | the\s+answer\s+is)\b)?
    {_FILLER} $""",
    _FLAGS,
)
"""Before an option: "no, actually it is"; but not the "no" of "A - no. B - yes."."""

DECIDED = re.compile(
    rf"""(?:
        \b i (?:'d|'ll|\s+would|\s+will)? \s+
        (?:choose | pick | select | guess | go\s+(?:with|for) | vote(?:\s+for)? | say | think | believe
          | agree\s+with)
        (?:\s+that)? (?:\s+it(?:'s|\s+is))?
      | \b it (?:'s | \s+is | \s+must\s+be | \s+has\s+to\s+be | \s+looks\s+like)
      | \b (?:must\s+be | leaves | leaving)
      | \b (?:so | therefore | thus | hence) ,?
      | \b (?:vote | guess | bet | conclusion | letter) \s+ (?:is | goes\s+to) (?:\s+for)?
      | \b (?:maybe | perhaps | probably | possibly | presumably | likely | definitely
          | certainly | clearly | surely) ,?
      | \b not (?!\s+only\b) [^.!?\n]{{1,60}}? \b but (?:\s+(?:rather|instead))?
      | => | →
    ) {_FILLER} $""",
    _FLAGS,
)
"""Before an option: "I choose", "it is", "therefore"."""

IS = re.compile(
    r"(?:\b(?:is | (?<!might\s)(?<!may\s)(?<!could\s)be) | 's)\s+(?:(?:option | choice | letter)\s+)?[\W_]*$",
    _FLAGS,
)
"""Before a label that ends its sentence: "the animal is"."""

NAMED = re.compile(r"(?:\b(?:option | choice | letter | alternative) | 选项)\s*$", _FLAGS)
"""Before a label: "option"."""

PRAISED = re.compile(
    r"""[\s,)\]]* (?:
        (?:is | was | seems | looks | would\s+be | must\s+be) \s+ (?:\w+ly\s+)? (?:the\s+)? (?:\w+ly\s+)?
        (?:right | correct | best | better | answer | true
          | (?:most|more)\s+(?:likely|accurate|appropriate|suitable))\b
      | (?:fits | matches) \s+ (?:the\s+\w+\s+)? best\b
      | (?:final\s+answer | for\s+sure)\b
    )""",
    _FLAGS,
)
"""After an option: "is correct", "fits best"."""

LEADS = re.compile(
    r"(?! \s* [:=] \s* [\d.]+ \s* % [\s\S]{0,80} % )"
    r"(?! \s+ (?:(?:is|seems)\s+(?:possible|plausible|a\s+possibility) | could | might | may)\b)"
    r"(?:[\s)\].,:;!?\-\"'] | $)",
    _FLAGS,
)
"""After an option that begins a reply; "A could be right" and "A: 10%, B: 80%" choose nothing."""

RULED = re.compile(
    r"\s* [:=(-]+ \s* (?:no|not|incorrect|wrong|false | yes|correct|right|true)\b (?![^\S\n]+\w)", _FLAGS
)
RULED_MARKED = re.compile(rf"{RULED.pattern} | [^\S\n]+ (?:no|yes) (?=[,;.]?\s*(?:[(\[]|\W*\Z))", _FLAGS)
"""After an option in a reply that goes through all of them: "A: no", "B - correct", "(A) no"."""

RULED_OUT = re.compile(r"\b(?:no|not|incorrect|wrong|false)\Z", re.I)

EQUATES = re.compile(r"\bis\b|'s\b", re.I)
"""Between a label and its option's text: says what the option is, and chooses nothing ("A is a dog")."""

LISTED = re.compile(r"\s*[)\].:]")
"""After a label that begins a line."""

SENTENCE_BEGINS = re.compile(r"(?:\A | [.!?:。]\s+ | \n) [\W_]* (?:option|choice)? [\W_]* $", _FLAGS)
SENTENCE_ENDS = re.compile(r"[\s.!。\"')\]*]*(?:\n|\Z)")

DENIED_BEFORE = re.compile(
    r"""(?:
        \b(?:
            not(?!\s+only) | no(?!\s+(?:doubt|question|wonder)) | never | hardly | scarcely | barely
          | doubt | neither | nor
          | cannot | without(?!\s+(?:a\s+)?doubt) | except | excluding | exclude | eliminate
          | (?:is|was|are|does|do|ca|could|wo|would)n't | rules?\s+out | ruled\s+out | reject | unlike | than
          | instead\s+of
          | (?:first|initially|originally|previously) ,? (?:\s+i)? \s+
            (?:thought|considered|guessed|said|believed|assumed|suspected)
          | (?:anything|everything|all)\s+but | wrong | incorrect | if | whether | unless
        ) (?:\s+[\w'()-]+){0,5}?
      | \b(?:wrong | incorrect | false | bad) (?:\s+(?:answer|option|choice)\w*)? \s* (?:is|are|:)?
    ) [\s(\["']* $""",
    _FLAGS,
)
"""Before an option, in its clause: "not", "rather than", "if it is"."""

DENIES_WEAKLY = re.compile(r"\b(?:if|whether|unless|is\s+(?:false|wrong|incorrect)\s+is)\b", re.I)
"""In what denies a label, but not the option's text behind it: "if wages are flexible by (A) wages fall"."""

DENIED_AFTER = re.compile(
    r"""[\s)\]"']* (?:\([^()]*\)\s*)? (?:
        (?:is|are|was|were|does|do|did|can|could|would|will|has|have|seems?) \s* (?:not|n't)\b
      | cannot\b
      | \? \s* no\b (?!\s+(?:doubt|question|wonder))
      | (?:is|are|was|does|do|ca|could|would|wo)n't\b
      | (?:is|are|was|were|seems?|looks?|sounds?|(?:would|could|must)\s+be) \s+
        (?:\w+ly\s+)? (?:(?:the|a)\s+)?
        (?:wrong | incorrect | false | out | impossible | unlikely | implausible | excluded | eliminated
          | ruled\s+out | absent | missing | irrelevant)\b
      | can\s+be\s+(?:\w+ly\s+)? (?:excluded | eliminated | ruled\s+out | discarded | dismissed | rejected)\b
    )""",
    _FLAGS,
)
"""After an option: "is wrong", "does not fit"."""

JOINT = re.compile(
    r"""[\s)(\]"'?]*
    (?:\s* (?: [,;/&+|→和或及、] | -> | => | \b(?:and | or | nor | und | oder | et | ou)\b))+ \s*
    (?:\b(?:both | either | option | choice | maybe | perhaps | possibly | the | an?)\b\s*)* [\s(\["']*""",
    _FLAGS,
)
"""Between two options that are named together."""

AND_OR = re.compile(r"\b(?:and|or|nor|und|oder|et|ou)\b|[/&+和或及]", re.I)
"""In a joint: what closes a list, which a comma alone does not."""

STARTED_OVER = re.compile(
    r"""\b(?: wait | on\s+second\s+thoughts? | scratch\s+that | i\s+(?:have\s+)?changed?\s+my\s+mind
    | let\s+me\s+(?:re\w+ | correct | think\s+again) )\b""",
    _FLAGS,
)
"""What was said before it no longer counts."""

ANSWER_FOLLOWS = re.compile(r"\banswer\b\s*(?:is\b|:)", re.I)

BESIDE_LABEL = re.compile(
    r"[\s()\].:,\-\"']* (?:(?:is | it\s+is | it's | the\s+answer\s+is)\s+)? (?:(?:an?|the)\s+)?", _FLAGS
)
"""Between a label and its option's text: "B. It is a"."""
