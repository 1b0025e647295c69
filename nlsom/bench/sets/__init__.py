"""Sets: declarations over one loader that reads official files lazily, with pictures by reference.

A set that a package brings is a `Spec` under the entry point group `nlsom.sets`.
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
    """Names of all sets, those of installed packages last."""
    return [*SETS, *sorted(plugins.installed("sets").keys() - SETS.keys())]


def set_named(name: str) -> Spec:
    """The declaration of a set.

    Raises:
        UsageError: No set of that name.
        PluginError: The package that brings it cannot be imported, or brings something else.
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
    """A set by name; without a path, from its package, from the cache, or else fetched from a hub.

    Raises:
        UsageError: No set of that name, nothing at the path, or no path and nowhere to fetch it from.
        ExtraMissing: The package that holds the set is not installed.
        Unavailable: It cannot be fetched.
    """
    return open_set(set_named(name), path)
