"""Which passwords are refused: too short, too long, or made of what a guesser tries first.

Instead of a list of a million words there is a rule: take away everything that can be guessed (the person's name, address and
institution, well-known words, keyboard rows, runs, repeats, years), undoing the usual swaps of letters for signs, and see
whether enough is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cloister.errors import InvalidParameter
from cloister.hub.services.accounts.hashing import LONGEST, plain

_ENOUGH = 6
_DISTINCT = 5
_SHORTEST_WORD = 3
_SWAPS = str.maketrans("0134578@$!|", "oieastbasii")
_WORDS = """
password passwort passwd kennwort mima parola contrasena motdepasse wachtwoord letmein welcome willkommen bienvenue login
logon admin administrator root user guest test tester testing demo default changeme change secret geheim master access private
secure security sicher trustno iloveyou loveyou love baby sunshine princess monkey dragon football baseball basketball soccer
hockey superman batman spiderman starwars pokemon michael jordan jennifer jessica ashley charlie thomas daniel andrew joshua
matthew shadow flower butterfly cheese chocolate cookie coffee summer winter spring autumn monday friday january december
computer internet windows google facebook linkedin apple samsung android hello freedom whatever nothing qazwsx qweasd zaq xsw
asdf qwer hospital clinic medicine doctor nurse patient health research science data analyst owner steward cloister correct
horse battery staple woaini aini the and for you with my new
"""
_COMMON = tuple(_WORDS.split())
_ROWS = (
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "qsdfghjklm",
    "zxcvbnm",
    "yxcvbnm",
    "wxcvbn",
    "01234567890",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "!@#$%^&*()",
)
_RUNS = tuple(sorted({row[at : at + 3] for each in _ROWS for row in (each, each[::-1]) for at in range(len(row) - 2)}))
_YEAR = re.compile(r"(19|20)\d\d")
_ENDS = re.compile(r"^[\W\d_]+|[\W\d_]+$")
"""Digits and signs before and after: what people add to a word."""
_REPEAT = re.compile(r"(.{1,6}?)\1{2,}")


def rest_of(password: str, about: Iterable[str] = ()) -> str:
    """What is left of a password when everything that can be guessed is taken away.

    >>> rest_of("P4ssw0rd2024!!!"), rest_of("AdaLovelace-1815", ["Ada Lovelace"]), rest_of("qwertyuiop12345")
    ('', '', '')
    >>> rest_of("tepid otter juggles maps")
    'tepidotterjugglesmaps'
    """
    text = plain(password).casefold()
    words = {word for name in about for word in re.split(r"[\W_]+", plain(name).casefold()) if len(word) >= _SHORTEST_WORD}
    words |= {plain(name).casefold().replace(" ", "") for name in about if len(name) >= _SHORTEST_WORD}
    text = _REPEAT.sub(" ", _YEAR.sub(" ", _ENDS.sub("", text)))
    text = _without_runs(text).translate(_SWAPS)
    for word in sorted({each.translate(_SWAPS) for each in words} | set(_COMMON), key=len, reverse=True):
        text = text.replace(word, " ")
    text = _REPEAT.sub(" ", _without_runs(text))
    return re.sub(r"[\W_]+", "", re.sub(r"\b\w{1,2}\b", " ", text))


def check_password(password: str, *, least: int, about: Iterable[str] = ()) -> None:
    """Refuse a password that is too short, too long or easily guessed; `about` is what is known of the person.

    >>> check_password("tepid otter juggles maps", least=12)
    >>> check_password("Passw0rd12345", least=12)
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The password is invalid: it is made of words, names or runs that are guessed first.
      Instead: four or five words that do not belong together
    """
    text = plain(password)
    if len(password) > LONGEST:
        raise _refused(f"it has more than {LONGEST} characters", "a shorter one")
    if len(text) < least:
        raise _refused(f"it has fewer than {least} characters", "four or five words that do not belong together")
    if len(set(text)) < _DISTINCT or len(rest_of(password, about)) < _ENOUGH:
        raise _refused(
            "it is made of words, names or runs that are guessed first", "four or five words that do not belong together"
        )


def _without_runs(text: str) -> str:
    """Each piece of three or more characters that stand beside one another on a keyboard or in the alphabet becomes a blank."""
    gone = [False] * len(text)
    for at in range(len(text) - 2):
        if text[at : at + 3] in _RUNS:
            gone[at : at + 3] = [True, True, True]
    return "".join(" " if away else letter for letter, away in zip(text, gone, strict=True))


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The password is invalid", why=why, instead=instead)
