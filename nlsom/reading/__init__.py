"""Finding answers in free text. Never guesses: if a careful reader could not tell, there is no answer."""

from nlsom.reading.choice import read_choice
from nlsom.reading.clean import clean
from nlsom.reading.number import read_number
from nlsom.reading.short import read_short
from nlsom.reading.unknown import says_unknown
from nlsom.reading.yes_no import read_yes_no

__all__ = ["clean", "read_choice", "read_number", "read_short", "read_yes_no", "says_unknown"]
