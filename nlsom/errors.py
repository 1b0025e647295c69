"""Every error that nlsom raises on purpose.

A message says what was wrong, where, and what to do; the command line prints it without a traceback and
exits with the class's `exit_code`.

    NlsomError
    ├── UsageError (2)            what the caller gave cannot be used
    │   ├── ConfigError           a society file: all its faults at once
    │   ├── MediaError            a picture or file that the gate refuses
    │   └── PluginError           no plugin of that name
    ├── Unavailable (4)           something that is needed is not available at present
    │   ├── ExtraMissing          an optional dependency is not installed
    │   ├── ModelUnavailable      a model or its server cannot be reached or loaded
    │   ├── BusClosed             the bus was closed while a request waited on it
    │   └── WorkerLost            the worker that hosted a member is gone, and no other hosts it
    ├── ModelError                a model answered with an error of its own
    │   └── PromptTooLong         the prompt does not fit the model's context
    ├── AgentFailed               an agent raised an error of its own, elsewhere
    ├── WorkerRefused             a worker's society, agent or version differs from the caller's
    ├── UnknownAddress            no agent is hosted at that address
    ├── DeadlineExceeded          a turn was not answered in time
    ├── TraceError                the trace cannot be read or written
    │   └── TraceRefused (2)      a file is not a trace, is missing, or cannot be opened
    └── NoVerdict (3)             the mindstorm stopped without a verdict
        └── MemberFailed          a member failed and the file says `on_error: raise`
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_LONGEST = 2000  # characters of a message that are shown
_SHOWN = 40  # names that a hint lists


class NlsomError(Exception):
    """Base of all errors raised by nlsom on purpose."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles message and attributes: some `__init__` take other arguments."""
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[NlsomError], args: tuple[Any, ...], state: dict[str, Any]) -> NlsomError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def words_of(error: BaseException) -> str:
    """The message of an error; "" if making it fails."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - `__str__` of an agent's error may raise anything
        return ""


def reason_of(error: Exception) -> str:
    """The message of a library's error, or its class if it has none."""
    return str(error) or type(error).__name__


def cause_of(error: BaseException) -> str:
    """Class and message of an error, shortened: some messages are whole web pages."""
    told = words_of(error)
    if len(told) > _LONGEST:
        told = f"{told[:_LONGEST]}… ({len(told):,} characters)"
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def meant(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the known name most like it, else all known names."""
    names = list(known)
    if near := difflib.get_close_matches(name, names, 1):
        return f"did you mean {near[0]!r}?"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN]) or 'none'}{more}"


class UsageError(NlsomError):
    """What the caller gave cannot be used as it is."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing wrong with a society file.

    Attributes:
        where: `file:line:column`, or a dotted path where there is no file.
        what: What is wrong and, where possible, what was probably meant.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ConfigError(UsageError):
    """A society cannot be built; `faults` lists everything that is wrong, not only the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class MediaError(UsageError):
    """A picture or file that the media gate refuses."""


class PluginError(UsageError):
    """No plugin of that name is installed, or it cannot be imported."""


class Unavailable(NlsomError):
    """Something that is needed is not available at the moment; trying again later may help."""

    exit_code = 4


class ExtraMissing(Unavailable):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'nlsom[{extra}]'")


class ModelUnavailable(Unavailable):
    """A model or its server cannot be reached or loaded."""


class BusClosed(Unavailable):
    """The bus was closed while a request waited on it."""


class WorkerLost(Unavailable):
    """The worker that hosted a member is gone, and no other hosts it."""


class AgentFailed(NlsomError):
    """An agent in another process raised an error of its own; the class is named as it was there."""


class WorkerRefused(NlsomError):
    """A worker refuses a turn: its society, agent or version differs from the caller's."""


class ModelError(NlsomError):
    """A model answered with an error of its own, such as a refused request."""


class PromptTooLong(ModelError):
    """The prompt and the longest reply do not fit the model's context together."""

    def __init__(self, tokens: int, reply: int, limit: int, model: str) -> None:
        self.tokens, self.reply, self.limit = tokens, reply, limit
        super().__init__(
            f"prompt of {tokens} tokens and a reply of up to {reply} do not fit {model} "
            f"(context {limit}); hear less (`hears: {{scope: latest}}`) or use a model with a longer context"
        )


class UnknownAddress(NlsomError):
    """No agent is hosted at that address of the bus."""

    def __init__(self, address: str, known: Sequence[str] = ()) -> None:
        hosted = ", ".join(known[:8]) + (" …" if len(known) > 8 else "") if known else "none"
        super().__init__(
            f"no agent is hosted at {address!r} (hosted: {hosted}); where members run elsewhere, "
            "`nlsom worker --bus URL --society FILE` hosts them"
        )


class DeadlineExceeded(NlsomError):
    """A turn was not answered before its deadline."""


class TraceError(NlsomError):
    """The trace cannot be read or written."""


class TraceRefused(TraceError):
    """A file is not a trace, does not exist, is damaged, or cannot be opened."""

    exit_code = UsageError.exit_code


class NoVerdict(NlsomError):
    """The mindstorm stopped without a verdict."""

    exit_code = 3


class MemberFailed(NoVerdict):
    """A member failed and the society's file says that this ends the mindstorm."""

    def __init__(self, member: str, phase: str, round: int, cause: str) -> None:
        self.member, self.phase, self.round, self.cause = member, phase, round, cause
        super().__init__(f"member {member!r} failed in phase {phase!r}, round {round}: {cause}")
