"""Sets: declarations over one loader that reads official files lazily, with pictures by reference."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from nlsom.bench.sets.loader import SampleSet, open_set
from nlsom.bench.sets.spec import Files, Spec
from nlsom.bench.sets.table import SETS
from nlsom.errors import UsageError

__all__ = ["SETS", "Files", "SampleSet", "Spec", "load_set", "open_set"]


def load_set(name: str, path: str | Path | None = None) -> SampleSet:
    """A known set by name.

    Raises:
        UsageError: No set of that name, or nothing at the path.
        ExtraMissing: The package that holds the set is not installed.
    """
    spec = SETS.get(name.casefold())
    if spec is None:
        close = get_close_matches(name.casefold(), SETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"no set {name!r} (there are {', '.join(SETS)}){hint}")
    return open_set(spec, path)
