"""What surrounds a drawing: title, legend and margins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from math import cos, radians, sin

from nlsom.drawing.scene import FONT, Disc, Label, Line, Scene, text_width
from nlsom.drawing.ties import Hub
from nlsom.member import Member

# The colours of Okabe and Ito, which most colour-blind readers can tell apart, without black and yellow, and
# two more; each is visible on white and on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a63d2", "#7f7f7f")
MARGIN = 24.0
ROW = 22.0
TITLE = 18.0


class Legend:
    """Says what colours and lines mean."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._roles = Counter(member.role for member in members)
        self._colours = {role: COLOURS[i % len(COLOURS)] for i, role in enumerate(self._roles)}
        self.notes: list[str] = []

    def colour(self, role: str) -> str:
        """The colour of a role; with more than eight roles, colours repeat."""
        return self._colours[role]

    def explain(self, direct: Set[tuple[int, int]], hubs: Iterable[Hub]) -> None:
        """Notes what the lines of this drawing mean."""
        mutual = any((b, a) in direct for a, b in direct)
        one_way = any((b, a) not in direct for a, b in direct)
        closed = {hub.closed for hub in hubs}
        if mutual:
            self.notes.append("a line: both hear each other")
        if one_way:
            self.notes.append("an arrow: the one it points to hears the other")
        if True in closed:
            self.notes.append("a dot: all connected to it hear each other")
        if False in closed:
            self.notes.append("arrows from a dot: these hear all connected to it")

    def note(self, text: str) -> None:
        """Adds a note."""
        self.notes.append(text)

    def sentence(self) -> str:
        """The whole drawing in words."""
        total = self._roles.total()
        roles = ", ".join(f"{n} {role}" for role, n in self._roles.items())
        return ". ".join([f"{total} member{'s' * (total != 1)}: {roles}", *self.notes]) + "."

    def entries(self) -> list[tuple[str | None, str]]:
        """The entries: colour (if any) and text."""
        roles = [(self._colours[role], f"{role} ({n})" if n > 1 else role) for role, n in self._roles.items()]
        return [*roles, *((None, note) for note in self.notes)]


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float


def framed(
    title: str,
    legend: Legend,
    lines: Sequence[Line],
    discs: Sequence[Disc],
    labels: Sequence[Label],
    *,
    faint: bool,
) -> Scene:
    """Moves a drawing so that it starts at (0, 0), and adds its title above and its legend below."""
    box = _bounds(discs, labels)
    inner = max(box.right - box.left, text_width(title, TITLE), 420.0)
    dx = MARGIN - box.left + (inner - (box.right - box.left)) / 2
    dy = MARGIN + TITLE * 2 - box.top
    marks, texts, y = _legend(legend, inner, box.bottom + dy + ROW * 1.5)
    heading = Label(MARGIN, MARGIN + TITLE / 2, title, title, TITLE, "start")
    return Scene(
        title=title,
        about=legend.sentence(),
        width=inner + 2 * MARGIN,
        height=y + MARGIN,
        lines=tuple(
            replace(line, x1=line.x1 + dx, y1=line.y1 + dy, x2=line.x2 + dx, y2=line.y2 + dy)
            for line in lines
        ),
        discs=(*(replace(disc, x=disc.x + dx, y=disc.y + dy) for disc in discs), *marks),
        labels=(heading, *(replace(label, x=label.x + dx, y=label.y + dy) for label in labels), *texts),
        faint=faint,
    )


def _legend(legend: Legend, width: float, y: float) -> tuple[list[Disc], list[Label], float]:
    """The entries in rows from left to right; and the middle of the last row (y)."""
    discs: list[Disc] = []
    labels: list[Label] = []
    x = MARGIN
    for colour, text in legend.entries():
        indent = 18.0 if colour else 0.0
        wide = indent + text_width(text, FONT)
        if x > MARGIN and x + wide > MARGIN + width:
            x, y = MARGIN, y + ROW
        if colour:
            discs.append(Disc(x + 6, y, 6, colour))
        labels.append(Label(x + indent, y, text, text, FONT, "start"))
        x += wide + 22
    return discs, labels, y


def _bounds(discs: Sequence[Disc], labels: Sequence[Label]) -> _Box:
    xs = [x for disc in discs for x in (disc.x - disc.r, disc.x + disc.r)]
    ys = [y for disc in discs for y in (disc.y - disc.r, disc.y + disc.r)]
    for label in labels:
        width = text_width(label.text, label.size)
        start = {"start": 0.0, "middle": -width / 2, "end": -width}[label.anchor]
        turn = radians(label.angle)
        for end in (start, start + width):
            xs.append(label.x + end * cos(turn))
            ys += [label.y + end * sin(turn) + side * label.size / 2 for side in (-1, 1)]
    return _Box(min(xs, default=0.0), min(ys, default=0.0), max(xs, default=0.0), max(ys, default=0.0))
