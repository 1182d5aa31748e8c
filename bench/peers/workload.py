"""Messages of about a kilobyte of English, the same for every system and every run.

`words.txt` holds words and how often each stands in a text of 20,000 words (Tine's own guides);
messages draw from it by those frequencies. `tine-bench --peer` makes the same bytes.
"""
import bisect
import itertools
import pathlib

SIZE = 1000
POOL = 1024

_lines = (pathlib.Path(__file__).parent / "words.txt").read_text().split("\n")
_pairs = [line.split() for line in _lines if line]
_words = [word for word, _ in _pairs]
_bounds = list(itertools.accumulate(int(count) for _, count in _pairs))


def _words_of(number):
    state, text = number, ""
    while len(text) < SIZE:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        text += " " + _words[bisect.bisect_right(_bounds, (state >> 33) % _bounds[-1])]
    return text


_pool = {}


def text(number):
    """Returns the text of message `number`. Texts are unique; every 1,024th has the same words."""
    place = number % POOL
    if place not in _pool:
        _pool[place] = _words_of(place)
    return f"{number}:{_pool[place]}"


def role(number):
    return ("user", "assistant")[number % 2]


def message(number):
    return role(number), text(number)
