"""A tokenizer for captions in the manner of the Penn Treebank, without Java.

It follows what COCO's caption tool does with Stanford's PTBTokenizer (`-lowerCase`, then punctuation left
out), for English captions. Where they are known to differ is said in `tests/test_bench_tokens.py`.
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

_TOKEN = re.compile(
    rf"""
    </?[a-z!?][^<>\s]*(?:\s+[^<>]*)?>                                # tags
  | (?:https?://|www\.)[^\s<>"]+                                       # addresses
  | (?:[a-z]\.){{2,}}                                                  # u.s., e.g.
  | (?:{_ABBREVIATIONS})\.(?![^\W_])                                   # st., mr.
  | (?<![^\W_])'n'                                                     # rock 'n' roll
  | \d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s)?(?=$|[^\w])                    # 3.5, 1,000, 11:44, 5th
  | '(?:s|re|ve|ll|d|m)(?![^\W_])                                      # 's
  | n't(?![^\W_])
  | (?:(?!n't(?![^\W_]))[^\W_])+                                       # a word, up to its n't or 's
    (?:[-/._&](?:(?!n't(?![^\W_]))[^\W_])+|'(?!(?:s|re|ve|ll|d|m)(?![^\W_]))[^\W_]+)*
  | \.\.\.|--+
  | [^\w\s] | _
    """,
    re.X,
)


def tokenize(caption: str) -> list[str]:
    """Lower-case tokens of a caption, punctuation left out."""
    tokens: list[str] = []
    for token in _TOKEN.findall(caption.replace("’", "'").lower()):
        if token in _DROPPED:
            continue
        if token in _BRACKETS:
            tokens.append(_BRACKETS[token])
        elif token in _SPLIT:
            tokens.extend(_SPLIT[token])
        elif token[0].isalnum() or token[0] in "'<$%&#@+=*/":
            tokens.append(token)
    return tokens
