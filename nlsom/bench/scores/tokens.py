r"""A Penn Treebank tokenizer for captions, without Java.

It gives the same tokens as COCO's caption tool, which runs Stanford's PTBTokenizer 3.4.1 (`-preserveLines
-lowerCase`) and then removes punctuation. The rules were inferred by running that program on real and
made-up captions: at each position the longest match wins, and required context after a token counts towards
its length. Its quirks are kept: `what?!` is two tokens, `end.The` is one, `'tilted'` begins with `'til`.

On 80,000 captions by people and models (including all of COCO val2017) its tokens were identical to the
program's; with signs, numbers and abbreviations inserted at random, on all but 9 of 90,000.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_TITLES = (
    "adj adm adv alex assoc asst atty attys ave brig capt cf cie cmdr col comdr cpl dept det dr drs elec "
    "ens ft gen gov govs hon insp invt jos lieut lt maj messrs mfg mlle mme mr mrs ms msgr mt mtg natl "
    "pfc ph pres prof profs pvt rep reps rev sen sens sfc sgt spc st ste supt supts treas vs wm"
)
# These can end a sentence, and keep their period more often: "etc.a" is two tokens, "st.a" is one.
_ENDS = (
    "al ala apr ariz assn aug bancorp bhd bldg blvd bros calif co colo conn corp cos ct dak dec esq est "
    "etc ext feb fla fri ga inc ind intl jan jr jul jun kan kans ky ltd mar md mich minn mo mon mont neb "
    "nev nov oct okla penn plc ppte ppty pte ptes pty ptys rd rt sep sept seq sq sr sys tel tenn thu "
    "thurs tue tues univ va vt wed wis wisc wyo"
)
_ENDS_IF_CAPITALISED = "az ark del ill la mass miss ore pa tex wash"
_BEFORE_NUMBERS = "no nos art fig figs op pp ca prop"
# After a letter and a period, these begin a sentence: "plan B. The dog", unlike "B. Smith".
_BEGINNINGS = (
    "a about according additionally after an as at but earlier he her here however if in it last many "
    "more now once one other our she since so some such that the their then there these they this we what "
    r"when while yet you mr\. ms\."
)
_PARTED = {"cannot": ("can", "not"), "gonna": ("gon", "na"), "gotta": ("got", "ta"), "wanna": ("wan", "na"),
           "lemme": ("lem", "me"), "gimme": ("gim", "me")}  # fmt: skip

# Letters and their combining marks, as far as they occur in captions.
_L = (
    r"A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u037d\u0386\u0388-\u0481\u0483-\u0527\u0531-\u0587"
    r"\u0591-\u05bd\u05d0-\u05f2\u0620-\u0669\u066e-\u06d3\u06d5-\u06ff\u0710-\u0963\u0966-\u0e3e\u0e40-\u0e4e"
    r"\u0e50-\u1fbc\u1fbe-\u1fff\u3005-\u3007\u3021-\u3029\u3031-\u30fa\u30fc-\ud7ff\uf900-\ufdff\ufe70-\ufefc"
    r"\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
)
_W = rf"{_L}0-9"
_SIGN = (  # each is a token of its own
    r"$%&*+<=>\\^|~/()\[\]{}\xa1-\xa9\xac\xae-\xb4\xb6-\xb9\xbc-\xbf\xd7\xf7\u037e\u0387\u0589\u05be\u060c"
    r"\u061b\u061f\u066a\u06d4\u0964\u0965\u0e3f\u2016\u2017\u201a\u201e\u2020-\u2023\u2030-\u2038\u203b"
    r"\u203e-\u2044\u2070\u2074-\u208e\u20a0\u20ac\u2100-\u2bff\u3001\u3002\u3012\u30fb\uff01-\uff0f"
    r"\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\uffe6"
)
_ENDING = r"(?i:[sdm]|re|ve|ll)"
_MARK = "['\u2019`\u2018]"  # characters typed as an apostrophe
_FIGURE = r"(?:\d*(?:[.,:]\d+)+|\d+)"


def _any(words: str) -> str:
    return words.replace(" ", "|")


def _capitalised(words: str) -> str:
    return "|".join(f"{word[0].upper()}(?i:{word[1:]})" for word in words.split())


# The first group of a rule is the token; whatever it matches after the group is required context and is
# scanned again. Matches of a rule without a group are dropped.
_WORD = rf"([{_L}][{_W}]*(?:[.!?][{_L}][{_W}]*)*)(?:['\u2019]{_ENDING})?"
_CONTRACTED = (
    rf"([A-Za-z]*[A-MO-Za-mo-z])[nN]{_MARK}[tT]",
    rf"([nN]{_MARK}[tT])(?![A-Za-z])",
    rf"([A-HJ-XZn]{_MARK}[{_L}]{{2,}})",  # O'Brien
    rf"([dDoOlL]{_MARK}[{_W}]{{2,}}(?:-[{_W}]+)*)",  # o'clock
    rf"([{_L}]+[aeiouyAEIOUY]{_MARK}[aeiouA-Z][{_L}]*)",  # ma'am
    r"((?i:dunkin|somethin|ol|[ldj])['\u2019])",
    r"((?i:c'mon|s'mores|e'er|ev'ry|li'l|nat'l|nor'easter|cap'n|c'est|o'o|cont'd\.))",
    rf"([yY]['\u2019])[{_L}]",
)
_SHORTENED = (
    r"([A-Za-z](?:\.[A-Za-z])+\.)",
    rf"((?i:(?:ph|ed)\.d|{_any(_TITLES)})\.)",
    rf"((?:(?i:{_any(_ENDS)})|{_capitalised(_ENDS_IF_CAPITALISED)})\.)(?s:..)?",
    rf"((?i:{_any(_BEFORE_NUMBERS)})\.)[ \xa0]?\d",
    rf"([A-Za-z]\.)(?!\s+(?=[A-Z])(?i:{_any(_BEGINNINGS)})(?!\S)|\s+<[A-Za-z/][^>\s]*>)",
)
_JOINED = (
    # 3.5-inch, non-U.S., double-d'decker
    r"([A-Za-z0-9][A-Za-z0-9.,]*(?:-(?:[A-Za-z](?:\.[A-Za-z])+\.|[dDoOlL]'[A-Za-z0-9]{2,}|[A-Za-z0-9]+))+)",
    r"([A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2})",  # and/or
    rf"([{_W}]+(?:[-_\u2010\u2011][{_W}]+)+)",
    rf"([{_W}](?:[{_W}.?!-]{{0,60}}[{_W}])?\.)[,;:]",  # before a comma any word counts as an abbreviation
)
_NUMBER = rf"([-+]?{_FIGURE})"
_NUMBERS = (
    _NUMBER,
    r"((?:\d{1,4}[- \xa0])?\d{1,4}(?:\\?/|\u2044)\d{1,4})",  # 1 1/2
    r"(\d{1,2}[-/]\d{1,2}[-/]\d{2,4})",
    rf"(\d+[{_L}][{_W}]*)",
)
_TELEPHONE = (
    r"(\(\d{2,3}\)[ \xa0]?\d{3,4}[- \xa0]?\d{3,5})",
    r"(\+{0,2}(?:\d{2,4}[- \xa0]){1,2}\d{3,4}[- \xa0]?\d{3,5})",
)
_FACE = r"([<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]])(?![A-Za-z0-9])"
_IN_ADDRESS, _LAST_OF_ADDRESS = r"[^\s\"<>|()]", r"[^\s\"<>|().,!?{}-]"
_PATH = rf"/{_IN_ADDRESS}+{_LAST_OF_ADDRESS}"
_ADDRESS = (
    rf"((?i:https?):/{_PATH})",
    rf"((?i:www)(?:\.[{_W}_-]+)*\.[A-Za-z]{{2,4}}(?:{_PATH})?)",
    rf"((?:[a-z]+\.)+(?:com|net|org|edu){_PATH})",
    rf"([A-Za-z0-9]{_IN_ADDRESS}*@[^\s\"<>|().]+(?:\.[^\s\"<>|().]+)*)",
)
_NAME = r"[A-Za-z][\w:.-]*"
_TAG = rf"(<(?:[!?][A-Za-z-][^>]*|/{_NAME}|{_NAME}(?: +{_NAME}(?: *= *(?:'[^']*'|\"[^\"]*\"))?)* */?) *>)"
_QUOTES = (r"[`\u2018]{2}|\u2019{2}", r"([`\u2018\u2019\u201c\u201d]{2})")


def _compiled(*rules: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, rules))


_AT_LETTER = _compiled(  # of two matches of equal length the first wins
    _WORD,
    *_CONTRACTED,
    *_SHORTENED,
    *_JOINED,
    r"([A-Z]+(?:[+&][A-Z]+)+)",  # AT&T
    r"([A-Z]+\$)",
    r"([CcFf]#|[Cc]\+\+)",
    r"((?i:anti-|pro-)|S&P-500|S&Ls|C\.D\.s)",
)
_AT_DIGIT = _compiled(*_NUMBERS, *_JOINED, *_TELEPHONE)
_AT_APOSTROPHE = _compiled(
    rf"('{_ENDING})(?![A-Za-z])",
    rf"(\u2019{_ENDING})",
    r"''",
    *_QUOTES,
    r"(['\u2019](?i:em|till?|cause|n['\u2019]|[2-9]0s))",
    r"('[nN])(?!\S)",
    r"(\u2019[nN])",
    r"('[tT])(?i:is|was)",
    r"(['\u2019]\d\d)(?!\S)",
)
_AT_SIGN = _compiled(
    rf"([{_SIGN}])",
    _TAG,
    *_QUOTES,
    _NUMBER,
    *_TELEPHONE,
    _FACE,
    r"(-[LR][RCS]B-)",
    r"-{1,4}(?!-)",
    r"\.{3,5}|(?:\.[ \xa0]){2,4}\.",
    r"([?!]{2,}|\*+|@+|#+|_+|-{5,}|<<|>>|\\[*/]|&#\d+;)",
    rf"(#[{_L}]+)",
    r"(@[A-Za-z_][A-Za-z_0-9]*)",
)
_AT_ADDRESS = _compiled(*_ADDRESS)
_IS_ADDRESS = re.compile(r"@|://|(?i:www)\.|\.(?:com|net|org|edu)/")
_PLAIN = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?: +|, |\n)")
_NUMBERS_MEET = re.compile(r"\d +\d")
_SHORT = frozenset(f"{_TITLES} {_ENDS} {_ENDS_IF_CAPITALISED}".split())

_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|mdash|ndash);", re.I)
_QUOTED = {"`": "`", "\u2018": "`", "\u2019": "'", "\u201c": "``", "\u201d": "''"}
_MEANS = {a + b: _QUOTED[a] + _QUOTED[b] for a in _QUOTED for b in _QUOTED} | {
    **{f"\u2019{ending}": f"'{ending}" for ending in ("s", "d", "m", "re", "ve", "ll")},
    "n\u2019t": "n't", "n\u2018t": "n`t", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-",
    "£": "#", "€": "$", "¤": "$", "\u20a0": "$", "¢": "cents",
    "¼": "1/4", "½": "1/2", "¾": "3/4", "⅓": "1/3", "⅔": "2/3",
}  # fmt: skip
_INSIDE = str.maketrans({" ": "\xa0", "(": "-lrb-", ")": "-rrb-"})


def _rules(first: str) -> tuple[re.Pattern[str], ...]:
    if first.isalpha():
        return _AT_LETTER
    if first.isdecimal():
        return _AT_DIGIT
    return _AT_APOSTROPHE if first in "'\u2019" else _AT_SIGN


def _found(text: str) -> Iterator[str]:
    """The tokens of a text; characters that no rule matches are skipped."""
    addresses = _AT_ADDRESS if _IS_ADDRESS.search(text) else ()
    at = 0
    while at < len(text):
        if best := _PLAIN.match(text, at):
            at, whole = best.end(), True
        else:
            matches = [m for rule in (*_rules(text[at]), *addresses) if (m := rule.match(text, at))]
            if not matches:
                at += 1
                continue
            best = max(matches, key=lambda match: match.end())
            if best.lastindex is None:
                at = best.end()
                continue
            at, whole = best.end(1), best.end() == best.end(1)
        token = best[1].lower()
        if whole and token in _PARTED:  # "wanna's" is not
            yield from _PARTED[token]
        else:
            yield _MEANS.get(token) or token.translate(_INSIDE)


def tokenize(caption: str) -> list[str]:
    """The lower-case tokens of a caption, without punctuation.

    A space inside a token (`1 1/2`) becomes a no-break space.
    """
    words = caption.strip().removesuffix(".").replace(", ", " ")
    if words.isascii() and words.replace(" ", "").isalnum() and not _NUMBERS_MEET.search(words):
        tokens = words.lower().split()  # a shortcut for most captions: only words, perhaps a final period
        if len(tokens[-1]) > 1 and tokens[-1] not in _SHORT and _PARTED.keys().isdisjoint(tokens):
            return tokens
    line = caption.replace("\n", " ").replace("\xad", "")
    plain = _ENTITY.sub(lambda entity: html.unescape(entity[0].lower()), line)
    return list(_found(plain + "\n"))
