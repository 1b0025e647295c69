"""A benchmark run to kill: up to 1,000 samples, and three members that log every turn to a file."""

import asyncio
import hashlib
import os
import sys
from pathlib import Path

from nlsom import Said
from nlsom.bench.folder import RunFolder
from nlsom.bench.run import Contender, Runner
from nlsom.bench.sets import load_set
from nlsom.phase import Ask, Hears, Inline
from nlsom.testing.agents import panel


class Noted:
    """Answers by hash; appends the key of every turn to a file before it answers."""

    def __init__(self, number, notes):
        self.identity = f"noted {number}"
        self._file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def speak(self, turn):
        await asyncio.sleep(0)
        os.write(self._file, turn.key.encode() + b"\n")
        heard = "".join(message.digest for message in turn.heard)
        drawn = hashlib.sha256(f"{self.identity}{turn.task.question}{heard}".encode()).digest()[0]
        return Said.words("yes" if drawn % 2 else "no")


async def main(folder, questions, limit):
    phases = [
        Ask(ask="everyone", prompt=Inline(text="Answer."), label="answer", form="answer"),
        Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer", hears=Hears()),
    ]
    members = [Noted(n, Path(folder).parent / "asked") for n in range(3)]
    runner = Runner(load_set("folder", questions), RunFolder(folder), limit=limit, concurrency=8)
    await runner.run([Contender.of(panel(members, phases))])


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
