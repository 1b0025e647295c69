from pathlib import Path

from nlsom.form import ChoiceForm, Form, NumberForm, TextForm, YesNoForm
from nlsom.message import Said
from nlsom.testing.pictures import page, plain
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.ocr import Ocr
from nlsom_agents.sight.question import read_question
from nlsom_agents.sight.reader import Line, in_order

PHOTOGRAPHS = Path(__file__).parents[1] / "societies/nlsom_societies/samples/images"
COFFEE = (PHOTOGRAPHS / "900000000003.jpg").read_bytes()

LETTER = page("Dear members of the society", "The meeting begins at 7 o'clock", "Bring a lamp and bread")


async def ask(question: str, picture: bytes, *forms: Form) -> list[Said]:
    heard = [make_message(question, label="question")]
    async with Ocr() as ocr:
        said = [
            await ocr.speak(make_turn(question, pictures=[picture], form=form, heard=heard))
            for form in forms or (TextForm(),)
        ]
    return [one for one in said if one is not None]


def line(text: str, left: float, top: float, right: float, bottom: float, score: float = 0.9) -> Line:
    return Line(text, score, left, top, right, bottom)


def told(question: str, *texts: str, options: tuple[str, ...] = ()) -> str | None:
    view = tuple(line(text, 0.1, at / 10, 0.9, (at + 0.8) / 10) for at, text in enumerate(texts))
    return Ocr().answer(view, read_question(question), options).answer


async def test_a_page_of_print_is_read_in_order_and_line_by_line() -> None:
    async with Ocr() as ocr:
        short = TextForm(short=True)
        turns = {
            "introduction": make_turn(pictures=[LETTER], phase="caption"),
            "first": make_turn("What does the first line say?", pictures=[LETTER], form=short),
            "last": make_turn("What does the last line say?", pictures=[LETTER], form=short),
            "lines": make_turn("How many lines are there?", pictures=[LETTER], form=NumberForm()),
            "there": make_turn("Is there any text?", pictures=[LETTER], form=YesNoForm()),
            "vote": make_turn(
                "What does it say to bring?", pictures=[LETTER], form=ChoiceForm(options=("a lamp", "a book"))
            ),
        }
        said = {name: await ocr.speak(turn) for name, turn in turns.items()}
    answers = {name: one.answer for name, one in said.items() if one is not None}
    assert answers["introduction"] is None
    assert answers["first"] == "Dear members of the society"
    assert answers["last"] == "Bring a lamp and bread"
    assert answers["lines"] == "3"
    assert answers["there"] == "yes"
    assert answers["vote"] == "a lamp"
    introduction = said["introduction"]
    assert introduction is not None
    assert (
        introduction.text.index("Dear")
        < introduction.text.index("meeting")
        < introduction.text.index("Bring")
    )


async def test_no_text_is_said_to_be_none() -> None:
    words, presence = await ask("Is there any text?", COFFEE, TextForm(), YesNoForm())
    assert "I read no text" in words.text
    assert presence.answer == "no"
    (sign,) = await ask("What does the sign say?", plain("white"))
    assert sign.answer is None
    assert sign.why


def test_what_is_written_is_told_where_it_is_clear_what_is_meant() -> None:
    assert told("What does the sign say?", "STOP") == "STOP"
    assert told("What does it say?", "KEEP", "LEFT") == "KEEP LEFT"
    assert told("What number is on the bus?", "Line 42", "Central") == "42"
    assert told("What number is on the bus?", "42", "180") is None
    assert told("What is the name of the restaurant?", "NOIR", "ISTANBUL GRILL") is None
    assert told("What does line 2 say?", "KEEP", "LEFT") == "LEFT"
    assert told("What does the fifth line say?", "KEEP", "LEFT") is None
    assert told("Is there a dog?", "DOG") is None


def test_a_choice_is_voted_for_if_it_alone_is_written() -> None:
    assert told("What does the sign say?", "Full STOP ahead", options=("stop", "go")) == "stop"
    assert told("What does the sign say?", "stop and go", options=("stop", "go")) is None
    assert told("What does the sign say?", "New York City", options=("York", "New York")) == "New York"
    assert told("What does the sign say?", "unstoppable", options=("stop", "go")) is None


def test_pieces_are_put_in_order_and_joined_where_they_are_close() -> None:
    pieces = [
        line("below", 0.1, 0.30, 0.3, 0.35),
        line("world", 0.32, 0.11, 0.5, 0.16),
        line("hello", 0.1, 0.10, 0.3, 0.15),
        line("far away", 0.8, 0.10, 0.95, 0.15),
    ]
    assert [one.text for one in in_order(pieces)] == ["hello world", "far away", "below"]
    assert in_order([]) == ()
