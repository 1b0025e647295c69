"""Shared by the benchmark tests: a set of questions, and societies that answer by script."""

import csv

from PIL import Image

from nlsom.bench.sets import load_set
from nlsom.message import Usage
from nlsom.testing.agents import Saying, panel


def questions(folder, count, *, pictures=1):
    """A set of yes/no questions about a few pictures; every third answer is no."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(pictures):
        Image.new("RGB", (32, 24), (40 * n % 256, 90, 120)).save(folder / f"{n}.png")
    with open(folder / "set.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "image", "question", "answer", "choices"])
        for n in range(count):
            rows.writerow(
                [f"q{n}", f"{n % pictures}.png", f"Is it {n}?", "no" if n % 3 == 0 else "yes", "yes|no"]
            )
    return load_set("folder", folder / "set.csv")


def number(turn):
    """The number of the question that a turn is about."""
    return int(turn.task.question.split()[-1].strip("?"))


def right_but(every, *, cost=100):
    """A member that errs on every nth question."""

    def say(turn):
        n = number(turn)
        right = "no" if n % 3 == 0 else "yes"
        wrong = "yes" if right == "no" else "no"
        return wrong if n % every == 0 else right

    usage = Usage(calls=1, prompt_tokens=cost - 1, completion_tokens=1)
    return Saying(say, usage=usage, identity=f"right but {every} {cost}")


def named(society, name):
    """The society under another name."""
    society.name = name
    society.__post_init__()
    return society


def trio(name="trio", every=(4, 5, 7)):
    """Three members that err on different questions, and vote."""
    return named(panel([right_but(one) for one in every]), name)
