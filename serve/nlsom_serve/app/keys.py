"""API keys: who calls, and what each may still spend."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from pathlib import Path

from nlsom.errors import UsageError
from nlsom_serve.app.errors import busy

HOUR = 3600.0
_SHORTEST = 16


@dataclass(slots=True)
class Account:
    """Who calls, and the tokens spent in the current hour.

    Attributes:
        name: For logs.
        most: Tokens an hour; None for no limit.
    """

    name: str
    most: int | None = None
    _spent: int = 0
    _since: float = field(default_factory=time.monotonic)

    def spend(self, tokens: int) -> None:
        """Takes note of what was spent."""
        self._turn_over()
        self._spent += tokens

    def check(self) -> None:
        """Refuses whoever has spent it all.

        Raises:
            ApiError: 429; a mindstorm under way is never cut by it, so the last one may overshoot.
        """
        self._turn_over()
        if self.most is not None and self._spent >= self.most:
            left = max(1, round(self._since + HOUR - time.monotonic()))
            told = f"this key has spent its {self.most:,} tokens of this hour"
            raise busy(told, seconds=left, code="tokens_exceeded")

    def _turn_over(self) -> None:
        now = time.monotonic()
        if now - self._since >= HOUR:
            self._since, self._spent = now, 0


class Keys:
    """The keys of a server; without any, everybody is let in under one account."""

    def __init__(self, keys: dict[str, str] | None = None, *, tokens: int | None = None) -> None:
        self._accounts = [
            (hashlib.sha256(key.encode()).digest(), Account(name, tokens))
            for name, key in (keys or {}).items()
        ]
        self._anybody = Account("anybody", tokens)

    @property
    def open(self) -> bool:
        """Whether no key is asked for."""
        return not self._accounts

    def find(self, authorization: str | None) -> Account | None:
        """The account that an Authorization header belongs to; None if it is nobody's.

        Digests of equal length are compared, in constant time, with every key, found or not.
        """
        if self.open:
            return self._anybody
        scheme, _, given = (authorization or "").partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, account in self._accounts:
            if hmac.compare_digest(known, digest):
                found = account
        return found if scheme.lower() == "bearer" else None


def read_keys(file: Path) -> dict[str, str]:
    """Reads a file of keys: `KEY` or `NAME KEY` a line; empty lines and those with # in front are skipped.

    Raises:
        UsageError: It cannot be read, holds no key, or one that is too short.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: the keys cannot be read ({error})") from None
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise UsageError(f"{file}:{number}: a line is KEY or NAME KEY")
        name, key = words if len(words) == 2 else (f"key-{number}", words[0])
        if len(key) < _SHORTEST:
            raise UsageError(f"{file}:{number}: a key has at least {_SHORTEST} characters")
        if name in keys:
            raise UsageError(f"{file}:{number}: a second key is called {name!r}")
        keys[name] = key
    if not keys:
        raise UsageError(f"{file}: holds no key")
    return keys
