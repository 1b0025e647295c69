"""Downloads embedded models with a progress bar."""

from __future__ import annotations

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from nlsom_agents.local import catalog
from nlsom_agents.local.fetch import pull
from nlsom_serve.cli.screen import err


def fetch(name: str) -> None:
    """Downloads a model unless it is in the cache, with a progress bar on standard error."""
    if catalog.path(name).is_file():
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=not err.is_terminal) as bar:
        task = bar.add_task(f"fetching {name}", total=None)
        pull(name, lambda done, total: bar.update(task, completed=done, total=total))
