"""Fetching a set by name from a hub of data sets, once; it stays in the cache."""

from __future__ import annotations

import errno
import os
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from nlsom.bench.sets.spec import Hub, Spec
from nlsom.errors import ExtraMissing, Unavailable, UsageError
from nlsom.home import home


def fetched(spec: Spec) -> Path:
    """The folder of a set in the cache, fetched if it is not there yet.

    What was fetched stays when a download breaks off, and the next one goes on there. `HF_ENDPOINT` and
    `HF_HUB_OFFLINE` are obeyed.

    Raises:
        UsageError: No hub is known to have the set.
        ExtraMissing: The hub's client is not installed.
        Unavailable: The hub does not answer, does not have the files, or there is no room for them.
    """
    folder = home() / "sets" / spec.name
    if folder.is_dir():
        return folder
    if spec.hub is None:
        raise UsageError(
            f"set {spec.name!r} needs a path (`--path`), or its files in {folder}; get it from {spec.source}"
        )
    part = home() / ".parts" / "sets" / spec.name
    try:
        client: Any = import_module("huggingface_hub")  # an extra
    except ImportError:
        raise ExtraMissing(f"fetching the set {spec.name!r} by its name", "bench") from None
    try:
        _fetch(client.HfApi(endpoint=os.environ.get("HF_ENDPOINT")), spec.hub, part)
        folder.parent.mkdir(parents=True, exist_ok=True)
        part.replace(folder)
    except Exception as fault:
        # The hub's client lets errors of its HTTP library through, which differ from version to version.
        if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
            why = f"there is no room for it in {part}; free some, or set NLSOM_HOME to another folder"
        else:
            why = f"the hub cannot be reached or does not give it ({type(fault).__name__}: {fault})"
        raise Unavailable(
            f"set {spec.name!r} is not here, and {why}. By hand: put the files {spec.hub.files} of the data "
            f"set {spec.hub.dataset} into {folder}, or fetch it from {spec.source} and give `--path`"
        ) from fault
    return folder


def _fetch(hub: Any, wanted: Hub, into: Path) -> None:
    """Brings the wanted files of one revision; the client goes on with a file that broke off."""
    found = hub.dataset_info(wanted.dataset)
    files = [file.rfilename for file in found.siblings if fnmatchcase(file.rfilename, wanted.files)]
    if not files:
        raise FileNotFoundError(f"no file {wanted.files} in {wanted.dataset}")
    for file in sorted(files):
        hub.hf_hub_download(
            wanted.dataset, file, repo_type="dataset", revision=found.sha, local_dir=str(into)
        )
