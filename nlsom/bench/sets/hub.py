"""Fetches sets by name from a hub of data sets, and caches them."""

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
    """Returns the cache folder of a set, and fetches the set if it is not cached yet.

    An interrupted download is resumed the next time. `HF_ENDPOINT` and `HF_HUB_OFFLINE` are obeyed.

    Raises:
        UsageError: The declaration names no hub for the set.
        ExtraMissing: The hub's client is not installed.
        Unavailable: The hub cannot be reached or does not provide the files, or the disk is full.
    """
    folder = home() / "sets" / spec.name
    if folder.is_dir():
        return folder
    if spec.hub is None:
        raise UsageError(
            f"set {spec.name!r} cannot be fetched by name: get it from {spec.source}, and give its path "
            f"(`--path`) or put its files into {folder}"
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
        # The hub's client passes on errors of its HTTP library, which differ between versions.
        if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
            why = f"there is no space left in {part}; free some, or set NLSOM_HOME to another folder"
        else:
            why = f"the hub cannot be reached or does not provide it ({type(fault).__name__}: {fault})"
        raise Unavailable(
            f"set {spec.name!r} is not on this machine, and {why}. To add it by hand, put the files "
            f"{spec.hub.files} of the data set {spec.hub.dataset} into {folder}; or get it from "
            f"{spec.source} and give its path (`--path`)"
        ) from fault
    return folder


def _fetch(hub: Any, wanted: Hub, into: Path) -> None:
    """Downloads the wanted files of one revision; the client resumes interrupted files."""
    found = hub.dataset_info(wanted.dataset)
    files = [file.rfilename for file in found.siblings if fnmatchcase(file.rfilename, wanted.files)]
    if not files:
        raise FileNotFoundError(f"no file {wanted.files} in {wanted.dataset}")
    for file in sorted(files):
        hub.hf_hub_download(
            wanted.dataset, file, repo_type="dataset", revision=found.sha, local_dir=str(into)
        )
