"""How far a run is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nlsom.bench.line import Line
from nlsom.bench.scores import Pair


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one society is.

    Attributes:
        society: Its name.
        done: Samples with a line, those of earlier runs included; a sample counts once a seed.
        total: How many there will be.
        failed: Of those done, how many ended in an error.
        scored: Of those done, how many have a score.
        score: Mean so far; None where the set is scored only as a whole.
        tokens: Spent by the whole run.
        fresh: Samples done by this process.
        seconds: Since this process began with this society.
        line: The last one; None before the first.
        stopped: Why no more samples are begun; "" otherwise.
    """

    society: str
    done: int = 0
    total: int = 0
    failed: int = 0
    scored: int = 0
    score: Pair | None = None
    tokens: int = 0
    fresh: int = 0
    seconds: float = 0.0
    line: Line | None = None
    stopped: str = ""

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.fresh / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take; None while that cannot be told."""
        return (self.total - self.done) / self.rate if self.rate else None

    def after(self, line: Line, seconds: float, *, fresh: bool) -> Progress:
        """The progress once a line is there."""
        score, scored = self.score, self.scored
        if line.official is not None and line.lenient is not None:
            scored += 1
            before = score or Pair(0.0, 0.0)
            score = Pair(
                before.official + (line.official - before.official) / scored,
                before.lenient + (line.lenient - before.lenient) / scored,
            )
        return replace(
            self,
            done=self.done + 1,
            failed=self.failed + bool(line.error),
            scored=scored,
            score=score,
            tokens=self.tokens + line.usage.tokens,
            fresh=self.fresh + fresh,
            seconds=seconds,
            line=line,
        )


Watch = Callable[[Progress], None]
