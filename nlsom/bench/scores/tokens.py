"""A tokenizer for captions in the manner of the Penn Treebank, without Java.

It follows what COCO's caption tool does with Stanford's PTBTokenizer (`-lowerCase`, then punctuation left
out), for English captions. On 2,071 captions of COCO and of models (1,976 read here only, the others in
`tests/vectors`) it gives the official tokens without exception. What these do not contain (signs of money,
fractions, `y'all`, addresses) follows the tokenizer's documentation, untried.
"""

from __future__ import annotations

import re

# Left out by COCO's caption tool. Brackets stay, as "-lrb-" in lower case is not in its list.
_DROPPED = frozenset(["''", "'", "``", "`", '"', ".", "?", "!", ",", ":", "-", "--", "...", ";"])
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}

_ABBREVIATIONS = (
    "mr|mrs|ms|dr|prof|sr|jr|st|ave|blvd|rd|ft|mt|inc|ltd|co|corp|bros|vs|etc|jan|feb|mar|apr|jun|jul|aug|sep|"
    "sept|oct|nov|dec|gen|col|capt|lt|sgt|sen|rep|gov|rev|hon|pres|dept|univ|assn|est|ph\\.d"
)
_SPLIT = {"cannot": ("can", "not"), "gonna": ("gon", "na"), "gotta": ("got", "ta"), "wanna": ("wan", "na"),
          "lemme": ("lem", "me"), "gimme": ("gim", "me"), "whatcha": ("wha", "t", "cha")}  # fmt: skip

_SIGNS = str.maketrans(
    {
        "’": "'",
        "£": "#",
        "€": "$",
        "¤": "$",
        "¢": " cents ",
        "½": "1/2",
        "¼": "1/4",
        "¾": "3/4",
        "⅓": "1/3",
        "⅔": "2/3",
    }
)
_WORD = r"(?:(?!n't(?![^\W_]))[^\W_])+"  # up to its n't
_ENDING = r"'(?:s|re|ve|ll|d|m)(?![^\W_])"

# Tried only where a caption has a sign of one: they cost more than all others together.
_ODD = r"""
    </?[a-z!?][^<>\s]*(?:\s+[^<>]*)?>                                # tags
  | (?:https?://|www\.)[^\s<>"]*[^\s<>".,:;!?()]                      # addresses
  | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ | (?:[\w-]+\.)+(?:com|net|org|edu)(?![^\W_])
  | [@#][a-z_]\w* |
"""
_TOKEN = rf"""
    (?:[a-z]\.){{2,}}                                                  # u.s., e.g.
  | (?:{_ABBREVIATIONS})\.(?![^\W_])                                  # st., mr.
  | (?<![^\W_])'(?:n'|(?:[2-9]0s|em|till?)(?![^\W_]))                  # rock 'n' roll, '90s
  | (?:ol|somethin|dunkin)'(?![^\W_]) | y'(?=[^\W_])
  | (?-i:[A-Z]+(?:[+&][A-Z]+)+)                                       # AT&T, but not men&women
  | \d+(?:[.,:/-]\d+)+(?:-[^\W_]+)*                                  # 3.5, 1,000, 11:44, 3.5-inch
  | {_ENDING}
  | n't(?![^\W_])
  | {_WORD}(?:[-/_]{_WORD}|(?!{_ENDING})'[^\W_]+)*                     # 5th, 5-year-old, men/women, o'clock
  | \.\.\.|--+
  | [^\w\s] | _
"""
_TOKENS = re.compile(_TOKEN, re.X | re.I)
_ODD_TOKENS = re.compile(_ODD + _TOKEN, re.X | re.I)
_SIGN_OF_ODD = re.compile(r"[@#<]|://|www\.|\.(?:com|net|org|edu)", re.I)
_ABBREVIATED = frozenset(_ABBREVIATIONS.split("|"))


def _abbreviated(words: str) -> bool:
    return words.rpartition(" ")[2].lower() in _ABBREVIATED


def tokenize(caption: str) -> list[str]:
    """Lower-case tokens of a caption, punctuation left out."""
    words = caption.strip().removesuffix(".").replace(",", " ")
    if words.isascii() and words.replace(" ", "").isalpha() and not _abbreviated(words):
        found = words.split()  # most captions: nothing but words, perhaps a period
    else:
        signs = caption.replace("&amp;", "&").translate(_SIGNS)
        found = (_ODD_TOKENS if _SIGN_OF_ODD.search(signs) else _TOKENS).findall(signs)
    tokens: list[str] = []
    for token in map(str.lower, found):
        if token in _DROPPED:
            continue
        if token in _BRACKETS:
            tokens.append(_BRACKETS[token])
        elif token in _SPLIT:
            tokens.extend(_SPLIT[token])
        elif token[0].isalnum() or token[0] in "'<$%&#@+=*/":
            tokens.append(token)
    return tokens
