"""Sets: declarations for one loader, which reads the official files lazily and refers to pictures by path.

Packages add a set with an entry point of the group `nlsom.sets` that refers to a `Spec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nlsom import plugins
from nlsom.bench.sets import captioning, multiple_choice, open_ended
from nlsom.bench.sets.convert import Caption, Question
from nlsom.bench.sets.loader import SampleSet, open_set
from nlsom.bench.sets.spec import Files, Hub, Spec
from nlsom.errors import PluginError, UsageError, meant

__all__ = [
    "SETS", "Caption", "Files", "Hub", "Question", "SampleSet", "Spec", "load_set", "open_set", "set_named",
    "set_names",
]  # fmt: skip

SETS: Mapping[str, Spec] = MappingProxyType(
    {spec.name: spec for spec in (*open_ended.SETS, *multiple_choice.SETS, *captioning.SETS)}
)
"""The declarations that come with this package, by name."""


def set_names() -> list[str]:
    """The names of all sets; those from installed packages come last."""
    return [*SETS, *sorted(plugins.installed("sets").keys() - SETS.keys())]


def set_named(name: str) -> Spec:
    """The declaration of the set with this name.

    Raises:
        UsageError: There is no such set.
        PluginError: The entry point cannot be imported, or is not a `Spec`.
    """
    if (spec := SETS.get(name.casefold())) is not None:
        return spec
    if name not in plugins.installed("sets"):
        raise UsageError(f"no set is called {name!r}; {meant(name.casefold(), set_names())}")
    found = plugins.load("sets", name)
    if not isinstance(found, Spec):
        raise PluginError(f"{name!r} (of sets) is {type(found).__name__}, not a Spec")
    return found


def load_set(name: str, path: str | Path | None = None) -> SampleSet:
    """Opens a set by name; without a path, from its package, the cache, or a hub, from which it is fetched.

    Raises:
        UsageError: There is no such set, nothing at the path, or no path and no known place to fetch it from.
        PluginError: The entry point of the set cannot be imported, or is not a `Spec`.
        ExtraMissing: The package that contains the set, or the hub's client, is not installed.
        Unavailable: The set cannot be fetched.
    """
    return open_set(set_named(name), path)
