"""Progress of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nlsom.bench.line import Line
from nlsom.bench.scores import Pair


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one society. A sample counts once for each seed.

    Attributes:
        society: Its name.
        done: Samples that have a line, including those of earlier runs.
        total: Samples of the whole run.
        failed: How many of those done ended in an error.
        scored: How many of those done have a score.
        score: Mean score so far; None if the set is only scored as a whole.
        tokens: Tokens spent by all societies of the run.
        fresh: Samples done by this process.
        seconds: Seconds since this process began with this society.
        line: The latest line; None before the first.
        stopped: Why no more samples are started; "" otherwise.
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
        """Samples per second."""
        return self.fresh / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Estimated seconds for the remaining samples; None while unknown."""
        return (self.total - self.done) / self.rate if self.rate else None

    def after(self, line: Line, seconds: float, *, fresh: bool) -> Progress:
        """The progress after another line.

        Args:
            line: The line.
            seconds: Seconds since this process began with this society.
            fresh: Whether this process made the line.
        """
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
"""Called with the progress after each line, and at the end of each society."""
