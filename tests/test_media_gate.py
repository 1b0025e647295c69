"""The gate lets every kind of picture in as a plain JPEG or PNG, and refuses the rest with a reason."""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import sys
import zlib

import numpy as np
import pillow_heif
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from PIL import ImageCms, features
from PIL.PngImagePlugin import PngInfo

from nlsom.errors import ExtraMissing, MediaError
from nlsom.media import GateLimits
from nlsom.media.gate import admit, admit_pixels
from nlsom.message import Image

LIMITS = GateLimits()


def encode(picture: Pillow.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def let_in(data: bytes, limits: GateLimits = LIMITS) -> tuple[Image, bytes, Pillow.Image]:
    """Admits a file and checks what holds of every admitted picture."""
    image, out = admit(data, "test", limits)
    shown = Pillow.open(io.BytesIO(out))
    shown.load()
    assert image.media_type == {"JPEG": "image/jpeg", "PNG": "image/png"}[str(shown.format)]
    assert shown.mode == "RGB" or (shown.format, shown.mode) == ("JPEG", "L")
    assert (image.width, image.height) == shown.size
    assert image.sha256 == hashlib.sha256(out).hexdigest()
    assert image.source == hashlib.sha256(data).hexdigest()
    return image, out, shown


def at(picture: Pillow.Image, x: int, y: int) -> tuple[int, ...]:
    pixel = picture.convert("RGB").getpixel((x, y))
    assert isinstance(pixel, tuple)
    return pixel


def near(pixel: tuple[int, ...], wanted: tuple[int, ...], within: int = 12) -> bool:
    return all(abs(a - b) <= within for a, b in zip(pixel, wanted, strict=True))


def photograph(width: int = 96, height: int = 64) -> Pillow.Image:
    """Smooth, different in every corner: red top left, blue top right, green bottom left."""
    y, x = np.mgrid[0:height, 0:width]
    right, down = x / (width - 1), y / (height - 1)
    levels = np.stack([(1 - right) * (1 - down), (1 - right) * down, right * (1 - down)], axis=-1)
    return Pillow.fromarray((levels * 255).astype(np.uint8))


def with_exif(orientation: int) -> Pillow.Exif:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "a camera"
    return exif


def png_of_size(width: int, height: int) -> bytes:
    """A PNG whose header promises a size that its data does not have."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


# What passes byte for byte


@pytest.mark.parametrize(
    "data",
    [
        encode(photograph(), "JPEG"),
        encode(photograph(), "JPEG", progressive=True, quality=50),
        encode(photograph().convert("L"), "JPEG"),
        encode(photograph(), "JPEG", exif=with_exif(1)),
        encode(photograph(), "PNG"),
        encode(Pillow.new("RGB", (1, 1), "red"), "PNG"),
        encode(
            photograph(),
            "JPEG",
            icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
        ),
    ],
    ids=["baseline", "progressive", "grey", "upright by EXIF", "PNG", "one pixel", "sRGB profile"],
)
def test_a_fine_picture_passes_byte_for_byte(data: bytes) -> None:
    image, out, _ = let_in(data)
    assert out == data
    assert image.sha256 == image.source


# What is made plain


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_exif_rotation_is_applied(kind: str, orientation: int) -> None:
    upright = photograph(96, 64)
    undo = {
        2: Pillow.Transpose.FLIP_LEFT_RIGHT,
        3: Pillow.Transpose.ROTATE_180,
        4: Pillow.Transpose.FLIP_TOP_BOTTOM,
        5: Pillow.Transpose.TRANSPOSE,
        6: Pillow.Transpose.ROTATE_90,
        7: Pillow.Transpose.TRANSVERSE,
        8: Pillow.Transpose.ROTATE_270,
    }[orientation]
    data = encode(upright.transpose(undo), kind, exif=with_exif(orientation))
    image, out, shown = let_in(data)
    assert (image.width, image.height) == (96, 64)
    assert near(at(shown, 1, 1), (255, 0, 0), 25)
    assert near(at(shown, 94, 1), (0, 0, 255), 25)
    assert near(at(shown, 1, 62), (0, 255, 0), 25)
    assert not shown.getexif(), "no metadata is left"
    assert b"a camera" not in out


def test_a_rotated_jpeg_stays_a_jpeg_of_about_its_size() -> None:
    noise = Pillow.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8))
    noise = noise.resize((600, 400), Pillow.Resampling.BICUBIC)
    data = encode(noise, "JPEG", quality=85, exif=with_exif(6))
    image, out, _ = let_in(data)
    assert image.media_type == "image/jpeg"
    assert len(out) < 2 * len(data)
    assert len(out) < len(encode(noise, "PNG"))


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_transparency_is_shown_on_white(kind: str) -> None:
    picture = Pillow.new("RGBA", (8, 8), (0, 0, 0, 0))
    picture.paste((200, 0, 0, 128), (0, 0, 4, 8))
    image, _, shown = let_in(encode(picture, kind, **({"lossless": True} if kind == "WEBP" else {})))
    assert image.media_type == "image/png"
    assert at(shown, 7, 0) == (255, 255, 255)
    assert near(at(shown, 0, 0), (227, 127, 127), 2)


def test_a_transparent_palette_is_shown_on_white() -> None:
    picture = Pillow.new("P", (4, 4), 0)
    picture.putpalette([0, 0, 0, 255, 0, 0])
    picture.putpixel((3, 3), 1)
    for transparency in (0, b"\x00\xff"):
        _, _, shown = let_in(encode(picture, "PNG", transparency=transparency))
        assert at(shown, 0, 0) == (255, 255, 255)
        assert at(shown, 3, 3) == (255, 0, 0)


def test_a_transparent_colour_of_an_rgb_png_is_shown_on_white() -> None:
    picture = Pillow.new("RGB", (4, 4), (1, 2, 3))
    picture.putpixel((3, 3), (200, 0, 0))
    _, _, shown = let_in(encode(picture, "PNG", transparency=(1, 2, 3)))
    assert at(shown, 0, 0) == (255, 255, 255)
    assert at(shown, 3, 3) == (200, 0, 0)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped_to_white(kind: str) -> None:
    levels = np.linspace(0, 65535, 256).astype(np.uint16).reshape(1, 256)
    _, _, shown = let_in(encode(Pillow.fromarray(levels), kind))
    grey = np.asarray(shown)[0, :, 0].astype(int)
    assert np.abs(grey - np.arange(256)).max() <= 1


def test_float_and_32_bit_samples_are_scaled() -> None:
    for samples in (np.linspace(0, 1, 256, dtype=np.float32), np.linspace(-7, 7, 256, dtype=np.float32)):
        _, _, shown = let_in(encode(Pillow.fromarray(samples.reshape(1, 256)), "TIFF"))
        assert np.abs(np.asarray(shown)[0, :, 0].astype(int) - np.arange(256)).max() <= 1
    wide = np.linspace(0, 2**31 - 1, 256).astype(np.int32).reshape(1, 256)
    _, _, shown = let_in(encode(Pillow.fromarray(wide), "TIFF"))
    assert np.abs(np.asarray(shown)[0, :, 0].astype(int) - np.arange(256)).max() <= 1
    flat = np.full((2, 2), np.nan, dtype=np.float32)
    assert let_in(encode(Pillow.fromarray(flat), "TIFF"))[2].size == (2, 2)


def test_cmyk_is_brought_to_rgb() -> None:
    cmyk = Pillow.merge("CMYK", [Pillow.new("L", (16, 16), value) for value in (0, 255, 255, 0)])
    for kind in ("JPEG", "TIFF"):
        _, _, shown = let_in(encode(cmyk, kind))
        red, green, blue = at(shown, 8, 8)
        assert red > 180
        assert green < 80
        assert blue < 80


def test_lab_is_brought_to_rgb() -> None:
    red = Pillow.new("LAB", (8, 8), (138, 209, 198))  # lightness 54, a 81, b 70
    assert near(at(let_in(encode(red, "TIFF"))[2], 4, 4), (255, 0, 0), 8)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF", "AVIF"])
def test_the_first_of_several_frames_counts(kind: str) -> None:
    red, blue = Pillow.new("RGB", (16, 16), "red"), Pillow.new("RGB", (16, 16), "blue")
    data = encode(red, kind, save_all=True, append_images=[blue])
    assert getattr(Pillow.open(io.BytesIO(data)), "n_frames", 1) == 2
    _, out, shown = let_in(data)
    assert out != data
    assert getattr(shown, "n_frames", 1) == 1
    assert near(at(shown, 8, 8), (255, 0, 0))


@pytest.mark.parametrize(
    ("options", "kind", "media_type"),
    [
        ({}, "BMP", "image/png"),
        ({}, "GIF", "image/png"),
        ({}, "TIFF", "image/png"),
        ({"compression": "jpeg"}, "TIFF", "image/jpeg"),
        ({"lossless": True}, "WEBP", "image/png"),
        ({}, "WEBP", "image/jpeg"),
        ({}, "AVIF", "image/jpeg"),
    ],
)
def test_lossless_sources_become_png_and_lossy_ones_jpeg(
    options: dict[str, object], kind: str, media_type: str
) -> None:
    image, _, shown = let_in(encode(photograph(), kind, **options))
    assert image.media_type == media_type
    assert near(at(shown, 1, 1), at(photograph(), 1, 1), 60 if kind == "GIF" else 25)


def test_a_heic_photograph_becomes_a_jpeg() -> None:
    file = io.BytesIO()
    pillow_heif.from_pillow(photograph()).save(file)
    image, _, shown = let_in(file.getvalue())
    assert (image.media_type, image.width, image.height) == ("image/jpeg", 96, 64)
    assert near(at(shown, 1, 1), (255, 0, 0), 30)
    with pytest.raises(MediaError, match="damaged"):
        admit(file.getvalue()[: len(file.getvalue()) // 2], "test", LIMITS)


def test_a_heic_photograph_is_turned_once() -> None:
    file = io.BytesIO()
    turned = photograph().transpose(Pillow.Transpose.ROTATE_90)
    pillow_heif.from_pillow(turned).save(file, exif=with_exif(6).tobytes())
    assert b"irot" in file.getvalue(), "the decoder turns it, and EXIF must not turn it again"
    image, _, shown = let_in(file.getvalue())
    assert (image.width, image.height) == (96, 64)
    assert near(at(shown, 1, 1), (255, 0, 0), 30)


def test_heic_without_its_library_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    pillow_heif.from_pillow(photograph()).save(file)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ExtraMissing, match=r"nlsom\[heif\]"):
        admit(file.getvalue(), "test", LIMITS)


def test_avif_without_its_codec_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(photograph(), "AVIF")
    monkeypatch.delitem(features.modules, "avif")
    with pytest.raises(MediaError, match=r"pillow>=11\.3"):
        admit(data, "test", LIMITS)


def test_colours_of_another_profile_are_brought_to_srgb() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
    data = encode(photograph(), "JPEG", icc_profile=lab.tobytes())
    assert let_in(data)[1] == data, "a profile for other pictures than this is left out of account"
    swapped = swapped_srgb()
    data = encode(Pillow.new("RGB", (16, 16), (255, 0, 0)), "PNG", icc_profile=swapped)
    _, out, shown = let_in(data)
    assert out != data
    assert "icc_profile" not in shown.info
    assert near(at(shown, 0, 0), (0, 0, 255), 20)


def swapped_srgb() -> bytes:
    """An sRGB profile whose red and blue primaries are exchanged: a wrong profile is plain to see."""
    data = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return data.replace(b"rXYZ", b"tmpX").replace(b"bXYZ", b"rXYZ").replace(b"tmpX", b"bXYZ")


def test_greys_of_another_gamma_are_brought_to_srgb() -> None:
    grey = Pillow.new("L", (16, 16), 64)
    for kind in ("JPEG", "PNG", "TIFF"):
        _, _, shown = let_in(encode(grey, kind, icc_profile=grey_profile(1.0)))
        assert near(at(shown, 8, 8), (137, 137, 137), 3), "a quarter of the light of white, in sRGB"
    data = encode(grey, "JPEG", icc_profile=grey_profile(2.2))
    assert let_in(data)[1] == data, "hardly different from sRGB"


def grey_profile(gamma: float) -> bytes:
    """A minimal ICC profile of greys with a power curve."""
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"
    tags = struct.pack(">I4sII4sII", 2, b"wtpt", 156, 20, b"kTRC", 176, 16)
    size = 128 + len(tags + white + curve)
    head = struct.pack(">I4sI4s4s4s", size, b"", 0x02400000, b"mntr", b"GRAY", b"XYZ ") + bytes(12) + b"acsp"
    return (head + bytes(28) + white[8:]).ljust(128, b"\0") + tags + white + curve


def test_a_damaged_profile_leaves_the_colours_as_they_are() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (b"no profile at all", srgb.replace(b"rTRC", b"xTRC")):
        data = encode(photograph(), "JPEG", icc_profile=profile)
        assert let_in(data)[1] == data


def test_damaged_exif_asks_for_no_rotation() -> None:
    data = encode(photograph(), "JPEG", exif=b"Exif\x00\x00XX*\x00nonsense")
    assert let_in(data)[1] == data
    text = PngInfo()
    text.add_text("Raw profile type exif", "exif\n\n\nthese are no hex digits")
    data = encode(photograph(), "PNG", pnginfo=text)
    assert let_in(data)[1] == data


@pytest.mark.parametrize("size", [(400, 100), (100, 400), (2000, 1)])
def test_max_side_scales_down_and_keeps_the_shape(size: tuple[int, int]) -> None:
    data = encode(Pillow.new("RGB", size, "red"), "JPEG")
    image, _, shown = let_in(data, GateLimits(max_side=50))
    assert max(shown.size) == 50
    assert min(shown.size) == max(1, round(min(size) * 50 / max(size)))
    assert let_in(data, GateLimits(max_side=2000))[1] == data
    assert image.media_type == "image/jpeg"


def test_a_max_side_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_side"):
        GateLimits(max_side=0)


def test_a_png_beyond_the_byte_limit_becomes_a_jpeg() -> None:
    noise = Pillow.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    image, out = admit_pixels(noise, "test", GateLimits(max_bytes=8_000))
    assert image.media_type == "image/jpeg"
    assert len(out) < 8_000


# Pictures of Pillow


def test_a_picture_of_pillow_is_known_by_its_pixels() -> None:
    picture = photograph()
    image, out = admit_pixels(picture, "test", LIMITS)
    again, _ = admit_pixels(Pillow.open(io.BytesIO(encode(picture, "BMP"))), "test", LIMITS)
    other, _ = admit_pixels(picture.transpose(Pillow.Transpose.ROTATE_180), "test", LIMITS)
    assert image.source == again.source != other.source
    assert np.array_equal(np.asarray(Pillow.open(io.BytesIO(out))), np.asarray(picture))


def test_a_jpeg_opened_with_pillow_stays_a_jpeg() -> None:
    image, _ = admit_pixels(Pillow.open(io.BytesIO(encode(photograph(), "JPEG"))), "test", LIMITS)
    assert image.media_type == "image/jpeg"


def test_a_damaged_picture_of_pillow_is_refused() -> None:
    data = encode(photograph(), "JPEG")
    with pytest.raises(MediaError, match="cannot be decoded"):
        admit_pixels(Pillow.open(io.BytesIO(data[:-200])), "test", LIMITS)
    with pytest.raises(MediaError, match="no pixels"):
        admit_pixels(Pillow.new("RGB", (0, 5)), "test", LIMITS)
    with pytest.raises(MediaError, match="limit of 10"):
        admit_pixels(photograph(), "test", GateLimits(max_pixels=10))


# What is refused


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"\xef\xbb\xbf  <SVG/>", "SVG"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"hello there", "text"),
        (b"BMW is a car, this is no bitmap", "text"),
        (b"PK\x03\x04" + bytes(30), "ZIP"),
        (b"\x00\x00\x00\x18ftypmp42" + bytes(12), "video"),
        (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07\x08", "known kind"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        (b"\xff\xd8\xff", "damaged"),
        (b"GIF89a", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "damaged"),
        (b"\x00\x00\x00\x14ftypavif\x00\x00\x00\x00avif", "damaged"),
    ],
)
def test_what_is_no_whole_picture_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(MediaError, match=reason) as refused:
        admit(data, "holiday.jpg", LIMITS)
    assert str(refused.value).startswith("holiday.jpg: ")


@pytest.mark.parametrize("size", [(30_000, 30_000), (10_000, 10_000), (8_000, 8_000), (1, 60_000_000)])
def test_a_decompression_bomb_is_refused_by_its_header(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError, match="limit of 50,000,000"):
        admit(png_of_size(*size), "bomb.png", LIMITS)


def test_a_gif_with_a_huge_canvas_is_refused_by_its_header() -> None:
    data = bytearray(encode(Pillow.new("P", (4, 4)), "GIF"))
    data[6:10] = struct.pack("<HH", 65535, 65535)
    with pytest.raises(MediaError, match="limit of 50,000,000"):
        admit(bytes(data), "bomb.gif", LIMITS)


def test_too_many_bytes_are_refused() -> None:
    data = encode(photograph(), "PNG")
    with pytest.raises(MediaError, match="larger than the limit of 100 bytes"):
        admit(data, "test", GateLimits(max_bytes=100))


def test_a_png_whose_check_sum_is_wrong_is_refused() -> None:
    data = bytearray(encode(photograph(), "PNG"))
    end = data.rindex(b"IEND") - 8
    data[end] ^= 0xFF  # in the check sum of the last IDAT, which decoding does not look at
    with pytest.raises(MediaError, match="damaged"):
        admit(bytes(data), "test", LIMITS)


SMALL = photograph(24, 16)
FILES = {
    "jpeg": encode(SMALL, "JPEG"),
    "progressive": encode(SMALL, "JPEG", progressive=True),
    "png": encode(SMALL, "PNG"),
    "palette": encode(SMALL.quantize(16), "PNG"),
    "gif": encode(SMALL, "GIF"),
    "webp": encode(SMALL, "WEBP"),
    "lossless webp": encode(SMALL, "WEBP", lossless=True),
    "bmp": encode(SMALL, "BMP"),
    "tiff": encode(SMALL, "TIFF"),
    "lzw tiff": encode(SMALL, "TIFF", compression="tiff_lzw"),
    "avif": encode(SMALL, "AVIF"),
}


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_refused_or_shows_the_whole_picture(name: str) -> None:
    data = FILES[name]
    whole = np.asarray(let_in(data)[2].convert("RGB"))
    for end in range(0, len(data), max(1, len(data) // 60)):
        try:
            _, _, shown = let_in(data[:end])
        except MediaError:
            continue
        assert np.array_equal(np.asarray(shown.convert("RGB")), whole), f"cut at {end}"


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_damaged_files_are_refused_or_decoded_but_never_anything_else(name: str, draw: st.DataObject) -> None:
    data = bytearray(FILES[name])
    for place in draw.draw(st.lists(st.integers(0, len(data) - 1), max_size=6)):
        data[place] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(MediaError, ExtraMissing):
        let_in(bytes(data), GateLimits(max_pixels=100_000))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_bytes_of_no_kind_are_refused(data: bytes) -> None:
    with pytest.raises(MediaError):
        admit(data, "test", LIMITS)


MODES = {
    "PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"],
    "JPEG": ["L", "RGB", "CMYK"],
    "GIF": ["1", "L", "P", "RGB", "RGBA"],
    "WEBP": ["L", "RGB", "RGBA", "P"],
    "BMP": ["1", "L", "P", "RGB"],
    "TIFF": ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "LAB"],
    "AVIF": ["RGB", "RGBA", "L"],
}


@st.composite
def pictures(draw: st.DrawFn) -> tuple[str, Pillow.Image]:
    kind = draw(st.sampled_from(sorted(MODES)))
    mode = draw(st.sampled_from(MODES[kind]))
    width, height = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    noise = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if mode in ("I;16", "I", "F"):
        kinds = {"I;16": np.uint16, "I": np.int32, "F": np.float32}
        return kind, Pillow.fromarray(noise.integers(0, 65535, (height, width)).astype(kinds[mode]))
    if mode == "P":
        return kind, Pillow.fromarray(noise.integers(0, 255, (height, width, 3), dtype=np.uint8)).quantize(32)
    bands = len(Pillow.new(mode, (1, 1)).getbands())
    if mode == "1":
        return kind, Pillow.fromarray(noise.integers(0, 2, (height, width), dtype=np.uint8) * 255).convert(
            "1"
        )
    parts = [Pillow.fromarray(noise.integers(0, 256, (height, width), dtype=np.uint8)) for _ in range(bands)]
    return kind, Pillow.merge(mode, parts)


@settings(max_examples=150, deadline=None)
@given(pictures())
def test_every_mode_of_every_kind_comes_out_plain_and_then_passes(drawn: tuple[str, Pillow.Image]) -> None:
    kind, picture = drawn
    image, out, shown = let_in(encode(picture, kind))
    assert shown.size == picture.size
    assert let_in(out)[1] == out, "what came out once passes byte for byte"
    if image.media_type != "image/png" or (kind == "GIF" and picture.mode not in ("1", "L", "P")):
        return  # the file itself is damaged
    if picture.mode in ("1", "L", "P", "RGB"):
        assert np.array_equal(np.asarray(shown), np.asarray(picture.convert("RGB")))
    if picture.mode in ("LA", "RGBA"):
        levels = np.asarray(picture.convert("RGBA")).astype(float)
        alpha = levels[..., 3:] / 255
        wanted = levels[..., :3] * alpha + 255 * (1 - alpha)
        assert np.abs(np.asarray(shown) - wanted).max() <= 1.5
