"""API keys, and the tokens that each may spend per hour."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from pathlib import Path

from nlsom.errors import UsageError
from nlsom_serve.app.errors import busy

HOUR = 3600.0
_MIN_LENGTH = 16


@dataclass(slots=True)
class Account:
    """The owner of a key, and the tokens it has spent in the current hour.

    Attributes:
        name: Its name in logs.
        most: Tokens per hour; None for no limit.
    """

    name: str
    most: int | None = None
    _spent: int = 0
    _since: float = field(default_factory=time.monotonic)

    def spend(self, tokens: int) -> None:
        """Counts tokens as spent."""
        self._start_new_hour()
        self._spent += tokens

    def check(self) -> None:
        """Checks that tokens are left. Running mindstorms are not stopped, so the limit may be exceeded.

        Raises:
            ApiError: 429: the tokens of this hour are spent.
        """
        self._start_new_hour()
        if self.most is not None and self._spent >= self.most:
            left = max(1, round(self._since + HOUR - time.monotonic()))
            message = f"this key has spent its {self.most:,} tokens for this hour"
            raise busy(message, seconds=left, code="tokens_exceeded")

    def _start_new_hour(self) -> None:
        now = time.monotonic()
        if now - self._since >= HOUR:
            self._since, self._spent = now, 0


class Keys:
    """The keys of a server. Without any, all clients share one account and need no key."""

    def __init__(self, keys: dict[str, str] | None = None, *, tokens: int | None = None) -> None:
        self._accounts = [
            (hashlib.sha256(key.encode()).digest(), Account(name, tokens))
            for name, key in (keys or {}).items()
        ]
        self._anybody = Account("anybody", tokens)

    @property
    def open(self) -> bool:
        """Whether no key is required."""
        return not self._accounts

    def find(self, authorization: str | None) -> Account | None:
        """The account of an Authorization header; None if the key is unknown.

        Takes constant time: digests of equal length are compared with every key, even after a match.
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
    """Reads a file of keys: `KEY` or `NAME KEY` per line; empty lines and comments (#) are skipped.

    Returns:
        Keys by name.

    Raises:
        UsageError: The file cannot be read, a line is malformed, a key is too short, a name is used twice, or
            there is no key.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot read the keys ({error})") from None
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise UsageError(f"{file}:{number}: a line must be KEY or NAME KEY")
        name, key = words if len(words) == 2 else (f"key-{number}", words[0])
        if len(key) < _MIN_LENGTH:
            raise UsageError(f"{file}:{number}: a key must have at least {_MIN_LENGTH} characters")
        if name in keys:
            raise UsageError(f"{file}:{number}: there are two keys named {name!r}")
        keys[name] = key
    if not keys:
        raise UsageError(f"{file}: contains no key")
    return keys
