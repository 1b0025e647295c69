"""What members say: parts, ballots, and the message that others hear. All are immutable values."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeInt


class Frozen(BaseModel):
    """Base of nlsom's values: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(Frozen):
    """Plain text."""

    kind: Literal["text"] = "text"
    text: str


class Image(Frozen):
    """A picture by reference; its bytes live in a `nlsom.media.MediaStore`.

    Attributes:
        sha256: SHA-256 of the bytes in the store (hex).
        media_type: `image/jpeg` or `image/png`.
        width: Pixels, after rotation by EXIF.
        height: Pixels, after rotation by EXIF.
        source: SHA-256 of the bytes as they were given (hex); equal to `sha256` if the gate did not change
            them. Keys of turns are made from it, so that stored answers are still found when another version
            of an image library encodes the picture differently.
    """

    kind: Literal["image"] = "image"
    sha256: str
    media_type: str
    width: int
    height: int
    source: str


class File(Frozen):
    """Any other file by reference: video, audio, a mesh.

    Attributes:
        sha256: SHA-256 of its bytes (hex).
        media_type: Such as `audio/wav`.
        name: What people call it.
    """

    kind: Literal["file"] = "file"
    sha256: str
    media_type: str
    name: str


class Data(Frozen):
    """A JSON value for programs to read: boxes, scores, tool output."""

    kind: Literal["data"] = "data"
    value: JsonValue


def whole(text: str) -> str:
    """Text that can be encoded: surrogate pairs are joined, and lone surrogates become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Part = Annotated[Text | Image | File | Data, Field(discriminator="kind")]


class Choice(Frozen):
    """A vote for one alternative."""

    kind: Literal["choice"] = "choice"
    choice: str


class Approval(Frozen):
    """A vote for every alternative that the voter finds acceptable."""

    kind: Literal["approval"] = "approval"
    approved: tuple[str, ...]


class Ranking(Frozen):
    """Alternatives from best to worst; those left out are tied for last."""

    kind: Literal["ranking"] = "ranking"
    ranking: tuple[str, ...]


class Scores(Frozen):
    """A score for each alternative, all on one scale."""

    kind: Literal["scores"] = "scores"
    scores: dict[str, Annotated[float, Field(allow_inf_nan=False)]]


Ballot = Annotated[Choice | Approval | Ranking | Scores, Field(discriminator="kind")]
"""Any vote; `kind` tells which."""


class Usage(Frozen):
    """What something cost.

    Attributes:
        calls: Calls of a model.
        prompt_tokens: Tokens read.
        cached_tokens: Those of them found in a prefix cache; None if the engine does not say.
        completion_tokens: Tokens written.
        seconds: Wall-clock seconds; for a mindstorm from start to end, not summed over members.
    """

    calls: NonNegativeInt = 0
    prompt_tokens: NonNegativeInt = 0
    cached_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        cached = [n for n in (self.cached_tokens, other.cached_tokens) if n is not None]
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=sum(cached) if cached else None,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
        )

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


NO_USAGE = Usage()


class Said(Frozen):
    """What an agent returns for a turn.

    Attributes:
        parts: The words and any other parts, in order.
        answer: The answer in these words, if the turn asked for one.
        ballot: The vote in these words, if the turn asked for one.
        confidence: Between 0 and 1; None if the agent cannot tell.
        usage: What saying it cost.
        why: Why there is no answer although the turn asked for one; None otherwise.
    """

    parts: tuple[Part, ...] = ()
    answer: str | None = None
    ballot: Ballot | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    usage: Usage = NO_USAGE
    why: str | None = None

    @classmethod
    def words(
        cls,
        text: str,
        *,
        answer: str | None = None,
        ballot: Ballot | None = None,
        confidence: float | None = None,
        data: JsonValue = None,
        usage: Usage = NO_USAGE,
    ) -> Self:
        """Says `text`; `data`, if given, becomes a `Data` part after it."""
        parts: tuple[Part, ...] = (Text(text=text),)
        if data is not None:
            parts += (Data(value=data),)
        return cls(parts=parts, answer=answer, ballot=ballot, confidence=confidence, usage=usage)

    @property
    def text(self) -> str:
        """The words, without data and pictures."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


class Message(Frozen):
    """What others hear: what was said, stamped by the scheduler, so that no member can pose as another.

    Attributes:
        said: What the member said.
        sender: Name of the member.
        label: What the phase calls it (`as: answer`).
        phase: Name of the phase it was said in.
        round: How many times the phase has run, from 1.
        digest: SHA-256 (hex) of the turn's key and what was said.
    """

    said: Said
    sender: str
    label: str
    phase: str
    round: int
    digest: str

    @property
    def text(self) -> str:
        """The words, without data and pictures."""
        return self.said.text


def digest_of(key: str, body: bytes) -> str:
    """The digest of a message, from its turn's key and the JSON of what was said."""
    return hashlib.sha256(key.encode() + body).hexdigest()
