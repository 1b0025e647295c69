"""Bytes live once, by digest; references travel."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import multiprocessing
import subprocess
import sys
import threading
from ipaddress import ip_network
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from nlsom.errors import MediaError
from nlsom.media import FolderStore, GateLimits, MediaStore
from nlsom.message import File, Image


def jpeg(colour: str = "red", size: tuple[int, int] = (16, 8), **options: object) -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", size, colour).save(file, "JPEG", **options)
    return file.getvalue()


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MediaStore:
    return MediaStore() if request.param == "memory" else FolderStore(tmp_path / "media")


async def test_a_picture_is_found_by_its_reference(store: MediaStore) -> None:
    image = await store.add(jpeg())
    assert image == Image(
        sha256=hashlib.sha256(jpeg()).hexdigest(),
        media_type="image/jpeg",
        width=16,
        height=8,
        source=hashlib.sha256(jpeg()).hexdigest(),
    )
    assert await store.read(image) == store.get(image) == jpeg()


async def test_every_kind_of_source_is_let_in(store: MediaStore, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(jpeg())
    url = "data:image/png;base64," + base64.b64encode(jpeg()).decode()
    images = [
        await store.add(source) for source in (jpeg(), tmp_path / "cat.png", str(tmp_path / "cat.png"), url)
    ]
    assert len(set(images)) == 1
    assert images[0].media_type == "image/jpeg", "neither the extension nor the declared type is believed"
    shown = await store.add(Pillow.new("RGB", (16, 8), "red"))
    assert (shown.width, shown.height, shown.media_type) == (16, 8, "image/png")


async def test_a_url_is_fetched_only_where_that_is_allowed() -> None:
    asked: list[str] = []

    async def fetch(url: str, limits: GateLimits) -> bytes:
        asked.append(url)
        return jpeg()

    store = MediaStore(fetch=fetch)
    with pytest.raises(MediaError, match=r"pictures\.example: fetching .* not allowed"):
        await store.add("https://pictures.example/cat.jpg", allow_network=False)
    assert asked == []
    image = await store.add("HTTPS://pictures.example/cat.jpg", allow_files=False)
    assert asked == ["HTTPS://pictures.example/cat.jpg"]
    assert await store.read(image) == jpeg()


async def test_a_private_address_is_not_fetched_unless_allowed(store: MediaStore) -> None:
    with pytest.raises(MediaError, match="not a public address"):
        await store.add("http://127.0.0.1:9/cat.jpg")
    with pytest.raises(MediaError, match=r"127\.0\.0\.1: cannot be reached"):
        await store.add("http://127.0.0.1:9/cat.jpg", limits=GateLimits(allow=(ip_network("127.0.0.0/8"),)))


async def test_what_the_gate_refuses_is_not_kept(store: MediaStore, tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="text"):
        await store.add(b"this is not a picture")
    assert not (tmp_path / "media").exists()


async def test_a_missing_picture_is_an_error_that_says_so(store: MediaStore) -> None:
    image = await MediaStore().add(jpeg())
    with pytest.raises(MediaError, match=f"{image.sha256[:12]}: no picture or file of this digest"):
        await store.read(image)
    with pytest.raises(MediaError, match="add it again"):
        store.get(image)


async def test_any_other_file_is_kept_as_it_is(store: MediaStore) -> None:
    file = await store.keep(b"RIFF wave", media_type="audio/wav", name="bark.wav")
    assert file == File(
        sha256=hashlib.sha256(b"RIFF wave").hexdigest(), media_type="audio/wav", name="bark.wav"
    )
    assert await store.read(file) == b"RIFF wave"
    assert await store.data_url(file) == "data:audio/wav;base64," + base64.b64encode(b"RIFF wave").decode()


async def test_a_picture_for_129_members_is_copied_and_encoded_once(store: MediaStore) -> None:
    image = await store.add(jpeg())
    read = await asyncio.gather(*(store.read(image) for _ in range(129)))
    urls = await asyncio.gather(*(store.data_url(image) for _ in range(129)))
    assert len({id(data) for data in read}) == 1
    assert len({id(url) for url in urls}) == 1
    assert urls[0] == "data:image/jpeg;base64," + base64.b64encode(jpeg()).decode()


async def test_data_urls_beyond_the_cache_are_made_again() -> None:
    small = MediaStore(cache_bytes=100)
    image = await small.add(jpeg())
    first, second = await small.data_url(image), await small.data_url(image)
    assert first == second
    assert first is not second


async def test_a_cancelled_asker_leaves_the_data_url_to_the_others(
    store: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = await store.add(jpeg())
    encode, cancelled = store._encode, threading.Event()
    # Else it may be encoded already when the asker is cancelled.
    monkeypatch.setattr(store, "_encode", lambda ref: cancelled.wait(60) and encode(ref))
    first = asyncio.create_task(store.data_url(image))
    second = asyncio.create_task(store.data_url(image))
    await asyncio.sleep(0)
    first.cancel()
    cancelled.set()
    assert (await second).startswith("data:image/jpeg;base64,")
    with pytest.raises(asyncio.CancelledError):
        await first


def test_a_store_serves_one_event_loop_after_the_other(store: MediaStore) -> None:
    async def crowd() -> set[Image]:
        return set(await asyncio.gather(*(store.add(jpeg(colour)) for colour in ["red", "blue"] * 8)))

    assert asyncio.run(crowd()) == asyncio.run(crowd())


async def test_a_photograph_of_12_megapixels_does_not_block_the_loop() -> None:
    file = io.BytesIO()
    exif = Pillow.Exif()
    exif[0x0112] = 6
    levels = np.random.default_rng(0).integers(0, 255, (300, 400, 3), dtype=np.uint8)
    Pillow.fromarray(levels).resize((4000, 3000)).save(file, "JPEG", quality=90, exif=exif)
    store, decoded_in = MediaStore(), list[int]()
    put = store._put

    def spy(digest: str, data: bytes) -> None:
        decoded_in.append(threading.get_ident())
        put(digest, data)

    store._put = spy
    adding = asyncio.create_task(store.add(file.getvalue()))
    beats = 0
    while not adding.done():
        await asyncio.sleep(0)
        beats += 1
    image = await adding
    assert (image.width, image.height) == (3000, 4000)
    assert beats > 10, "other tasks went on meanwhile"
    assert decoded_in
    assert decoded_in != [threading.get_ident()]


def test_importing_the_store_imports_neither_pillow_nor_httpx() -> None:
    program = "import sys, nlsom.media; print({'PIL', 'httpx', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# On disk


async def test_a_folder_outlives_its_store(tmp_path: Path) -> None:
    image = await FolderStore(tmp_path).add(jpeg())
    assert await FolderStore(str(tmp_path)).read(image) == jpeg()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [image.sha256]


async def test_damaged_bytes_are_told_and_healed_by_adding_again(tmp_path: Path) -> None:
    image = await FolderStore(tmp_path).add(jpeg())
    path = tmp_path / image.sha256[:2] / image.sha256
    for damage in (jpeg()[:-1], jpeg()[:-1] + b"\0", b""):
        path.write_bytes(damage)
        with pytest.raises(MediaError, match="damaged"):
            await FolderStore(tmp_path).read(image)
        assert await FolderStore(tmp_path).add(jpeg()) == image
        assert await FolderStore(tmp_path).read(image) == jpeg()


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MediaError, match="cannot be written"):
        await FolderStore(tmp_path / "file").add(jpeg())
    image = await FolderStore(tmp_path).add(jpeg())
    path = tmp_path / image.sha256[:2] / image.sha256
    path.unlink()
    path.mkdir()
    with pytest.raises(MediaError, match="cannot be read"):
        await FolderStore(tmp_path).read(image)


async def test_a_forged_digest_cannot_name_another_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    forged = File(sha256="../secret", media_type="text/plain", name="x")
    with pytest.raises(MediaError, match="not a SHA-256"):
        await FolderStore(tmp_path / "media").read(forged)


async def test_a_folder_store_holds_a_bounded_number_of_bytes_in_memory(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, cache_bytes=len(jpeg()) + 10)
    red, blue = await store.add(jpeg("red")), await store.add(jpeg("blue"))
    path = tmp_path / red.sha256[:2] / red.sha256
    path.unlink()
    with pytest.raises(MediaError, match="no picture"):
        await store.read(red)
    (tmp_path / blue.sha256[:2] / blue.sha256).unlink()
    assert await store.read(blue) == jpeg("blue"), "the one used last is held"


def _keep_many(folder: str) -> None:
    async def keep() -> None:
        store = FolderStore(folder)
        for number in range(40):
            await store.keep(bytes([number]) * 50_000, media_type="a/b", name="x")

    asyncio.run(keep())


async def test_processes_that_write_the_same_bytes_leave_them_whole(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_keep_many, args=(str(tmp_path),)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        await asyncio.to_thread(writer.join)
        assert writer.exitcode == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 40
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.name for path in files)
