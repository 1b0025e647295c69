"""Plugins by entry point. A plugin is imported when it is first named, never before."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from nlsom.errors import ExtraMissing, NlsomError, PluginError, cause_of, meant

Group = Literal["agents", "models", "tasks", "rules", "scorers", "sets", "societies", "tools"]


@cache
def installed(group: Group) -> dict[str, EntryPoint]:
    """The installed plugins of a group by name. They are looked up once per process."""
    return {point.name: point for point in entry_points(group=f"nlsom.{group}")}


def version(group: Group, name: str) -> str:
    """Name and version of the distribution that a plugin comes from; "" if unknown."""
    point = installed(group).get(name)
    return f"{point.dist.name} {point.dist.version}" if point is not None and point.dist is not None else ""


def sound(group: Group) -> tuple[dict[str, Any], list[NlsomError]]:
    """Imports all plugins of a group.

    Returns:
        Those that can be imported, by name; and the errors of the others.
    """
    had: dict[str, Any] = {}
    faults: list[NlsomError] = []
    for name in installed(group):
        try:
            had[name] = load(group, name)
        except (PluginError, ExtraMissing) as error:
            faults.append(error)
    return had, faults


def load(group: Group, name: str) -> Any:
    """Imports a plugin.

    Raises:
        PluginError: No plugin has this name, or it cannot be imported.
        ExtraMissing: It needs a library that is not installed.
    """
    known = installed(group)
    if name not in known:
        raise PluginError(f"no plugin in {group} is called {name!r}; {meant(name, sorted(known))}")
    point = known[name]
    try:
        found = point.load()
    except ModuleNotFoundError as error:
        extra = next((e for e in point.extras), "")
        if extra:
            raise ExtraMissing(f"{name!r} (of {group})", extra) from error
        raise PluginError(
            f"{name!r} (of {group}) needs the module {error.name!r}, which is not installed"
        ) from error
    except NlsomError:
        raise
    except (Exception, SystemExit) as error:
        # Importing runs other people's code, which may raise anything; only whoever named it is affected.
        raise PluginError(f"{name!r} (of {group}) cannot be imported: {cause_of(error)}") from error
    if group == "societies" and not hasattr(found, "__path__"):
        raise PluginError(f"{name!r} (of {group}) is no package, and so holds no society files")
    return found
