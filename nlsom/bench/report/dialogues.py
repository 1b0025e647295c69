"""The samples of the report: picture, question, and each society's answer with its dialogue."""

from __future__ import annotations

import asyncio
import base64
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape

from nlsom.bench.compare import RIGHT
from nlsom.bench.folder import RunFolder
from nlsom.bench.line import Line
from nlsom.bench.scores import Score
from nlsom.bench.standing import Standing
from nlsom.errors import MediaError
from nlsom.media import FolderStore
from nlsom.message import Said
from nlsom.trace import Trace
from nlsom.trace.stored import read_stored

_SIDE = 320  # maximum width and height of a picture in the page, in pixels


def chosen(every: Sequence[Standing], most: int) -> list[str]:
    """Samples to show, at most `most`: first those on which societies disagree most, then wrong ones."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for one in every:
        for line, score in one.scored:
            scores[line.sample].append(score.lenient)

    def order(sample: str) -> tuple[float, float, int, str]:
        found = scores[sample]
        return (min(found) - max(found), min(found), len(sample), sample)

    return sorted(scores, key=order)[:most]


async def dialogues(
    every: Sequence[Standing], folders: Mapping[str, RunFolder], traces: Mapping[str, Trace], most: int
) -> str:
    """The samples as HTML.

    Args:
        every: The societies.
        folders: Folders of the runs, by name.
        traces: Open traces of the runs, by name.
        most: Maximum number of samples.

    Raises:
        TraceError: A record cannot be read.
    """
    lines: dict[str, list[tuple[Standing, Line, Score | None]]] = defaultdict(list)
    for one in every:
        scores = {id(line): score for line, score in one.scored}
        for line in one.lines:
            if line.seed == 0:
                lines[line.sample].append((one, line, scores.get(id(line))))
    parts: list[str] = []
    for sample in chosen(every, most):
        asked = lines[sample]
        if not asked:
            continue
        standing, first, _ = asked[0]
        pictures = "".join(await _pictures(first, folders[standing.run]))
        content = [f'<p class="q">{escape(first.question)}</p>']
        choices = first.task.get("choices")
        if choices and isinstance(choices, list):
            content.append(f"<p>{escape(' · '.join(map(str, choices)))}</p>")
        gold = list(dict.fromkeys(first.answers or first.references))
        content.append(
            f"<p>Gold: {escape(', '.join(gold) or '–')} <small>(sample {escape(sample)})</small></p>"
        )
        for one, line, score in asked:
            content.append(await _society(one, line, score, traces[one.run]))
        parts.append(f'<div class="sample"><div>{pictures}</div><div>{"".join(content)}</div></div>')
    return "".join(parts)


async def _society(standing: Standing, line: Line, score: Score | None, trace: Trace) -> str:
    right = score is not None and score.lenient > RIGHT
    said = line.error or (line.answer if line.answer is not None else "no verdict")
    mark = (
        "" if score is None else f' <span class="{"right" if right else "wrong"}">{score.lenient:.2f}</span>'
    )
    head = f"<summary>{escape(standing.name)}: <b>{escape(said)}</b>{mark}</summary>"
    parts: list[str] = []
    step: tuple[str, int] | None = None
    records = [record async for record in trace.records(line.mindstorm)] if line.mindstorm else []
    for record in records:
        if record.kind not in ("replied", "abstained"):
            continue
        if step != (record.phase, record.round):
            step = (record.phase, record.round)
            parts.append(f'<p class="step">{escape(record.phase)}, round {record.round}</p>')
        if record.kind == "abstained":
            text = f"<i>abstains: {escape(record.body.decode())}</i>"
        else:
            message = read_stored(Said, record.body)
            text = escape(" ".join(message.text.split()) or "(nothing)")
            if message.answer is not None and message.answer != message.text.strip():
                text += f" → <b>{escape(message.answer)}</b>"
            if message.confidence is not None:
                text += f" <small>({message.confidence:.0%} sure)</small>"
        parts.append(f'<p class="said"><b>{escape(record.member)}:</b> {text}</p>')
    return f"<details>{head}{''.join(parts)}</details>"


async def _pictures(line: Line, folder: RunFolder) -> list[str]:
    store, found = FolderStore(folder.media), list[str]()
    for image in line.images:
        try:
            data = await store.read(image)
        except MediaError as error:  # a folder that was moved without its pictures: shown in the report
            found.append(f"<p>{escape(str(error))}</p>")
            continue
        small, kind = await asyncio.to_thread(_thumbnail, data)
        code = base64.b64encode(small).decode("ascii")
        found.append(f'<img alt="the picture" src="data:image/{kind};base64,{code}">')
    return found


def _thumbnail(data: bytes) -> tuple[bytes, str]:
    """The picture, scaled down for the page, and its format; a small PNG stays as it is."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        kind = "png" if picture.format == "PNG" and max(picture.size) <= _SIDE else "jpeg"
        if kind == "png":
            return data, kind
        picture.thumbnail((_SIDE, _SIDE))
        out = io.BytesIO()
        picture.convert("RGB").save(out, "JPEG", quality=80)
        return out.getvalue(), kind
