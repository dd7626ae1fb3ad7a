"""Whether a file is a table at all: prose, a log and a program are refused, a list of values is taken.

Every text is a CSV file of one column, so what is no table has to be told by how it is written. The first line decides most of
it: a sentence, a date with words behind it or a line of a program is no name of a column. Where it may be one, the lines below
it decide: sentences, lines that are indented, lines of a log. A name of one word above lines that are sentences is a column of
texts, which is a table, unless the sentences run on from line to line. Of a file of several columns, only sentences that have
equally many commas by chance are told from a table, where the first line is one too.

Only the first lines are looked at, at the upload, for whoever sent the file; what is said of them quotes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_WORDS_OF_A_NAME = 8
_WORDS_OF_A_SENTENCE = 5
_FEWEST = 2
_LONG = 40
_ENDS = re.compile(r"[.!?]['\")]*$")
_NUMBER = re.compile(r"[-+]?[\d.]+")
_IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]"
_STOP = re.compile(f"{_IDEOGRAPH}[。！？；]|{_IDEOGRAPH}.*[，：]$|[.!,;]$")
_SENTENCE_STOPS = re.compile(f"{_IDEOGRAPH}[，。！？；：]|[.!?;:]$")
_ABBREVIATIONS = re.compile(r"(?:\S+\.\s*)+|.*\b[A-Z][a-z]{0,3}\.")
_MOMENT = re.compile(r"\[?\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[T\d:.,+Z \]-]*|[A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2} ")
_PROGRAM = re.compile(
    r"<(?:[!?]|/?(?:html|head|body|div|p|script|style|svg|table|ul|ol|xml)\b)|\{|\[\s*(?:$|[{\[])|\"{3}|'{3}|/[*/]|#!|#include\b|```|---$|===|"
    r"(?:import|package|using|use) [\w.:]+;?$|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]"
)
_MARKUP = re.compile(r"(?:#{1,6}|[-*>+]|\d+[.)]) \S|```|<[!?a-zA-Z/]|\|")
_STATEMENT = re.compile(
    r"(?:def|class|import|return|if|for|while|else|try|with|from)\b.*|.*(?:[{};]|\):|\)\s*->.*:)$|[)\]}]+[,;]?$"
)


def is_prose(name: str, lines: Sequence[str], ragged: Sequence[bool]) -> bool:
    """Whether a first line and the lines below it are no column of values; `ragged` says which have more than one field.

    >>> is_prose("An old silent pond", ["A frog jumps into the pond", "Splash! Silence again."], [False, False])
    True
    >>> is_prose("Town", ["Frankfurt am Main", "Santa Cruz de Tenerife", "St. Ives"], [False] * 3)
    False
    """
    words = name.split()
    if len(words) > _WORDS_OF_A_NAME or _is_no_name(name.strip(), words):
        return True
    written = [(line, odd) for line, odd in zip(lines, ragged, strict=True) if line.strip()]
    if len(words) == 1 and not _MARKUP.match(name):
        return _runs_on([line for line, _ in written])
    odd = [line for line, more in written if more or _is_odd(line)]
    return len(odd) >= _FEWEST and 2 * len(odd) >= len(written) and 2 * len(set(odd)) > len(odd)


def are_sentences(first: str, lines: Sequence[str]) -> bool:
    """Whether a first line and those below it, each with several commas, are sentences and no rows.

    >>> are_sentences("Dear Ada, it was nice, as ever.", ["We met on Monday, had lunch, and talked."])
    True
    >>> are_sentences("full name of the person, age, comment", ["Ada, 36, It was very nice to see her."])
    False
    """
    words = first.split()
    if len(words) <= _WORDS_OF_A_NAME and not (len(words) >= _WORDS_OF_A_SENTENCE and _is_no_name(first.strip(), words)):
        return False
    written = [line.strip() for line in (first, *lines) if line.strip()]
    if any(mark in line for line in written for mark in ('"', "\t", ";", "|")):
        return False
    parts = [line.split(",") for line in written]
    if any(part[:1] not in ("", " ") or _NUMBER.fullmatch(part.strip()) for line in parts for part in line[1:]):
        return False
    return len(written) >= _FEWEST and 2 * sum(_ENDS.search(line) is not None for line in written) >= len(written)


def _is_no_name(name: str, words: Sequence[str]) -> bool:
    if _PROGRAM.match(name) or _log(name):
        return True
    stops = _STOP.search(name)
    return stops is not None and (not name.isascii() or len(words) > 1) and not _ABBREVIATIONS.fullmatch(name)


def _log(line: str) -> bool:
    """A moment with words behind it."""
    begins = _MOMENT.match(line)
    return begins is not None and len(re.findall(r"[^\W\d_]{2,}", line[begins.end() :])) > 1


def _is_odd(line: str) -> bool:
    """Whether a line is no value that a list would have."""
    words, text = line.split(), line.strip()
    if line[:1] in ("\t", " ") and line[:2].isspace() and len(words) > 1:
        return True
    if text.startswith('"'):
        return False
    stops = _SENTENCE_STOPS.search(text)
    sentence = len(words) >= _WORDS_OF_A_SENTENCE or (stops is not None and (len(words) > 2 or not text.isascii()))
    return sentence or bool(_MARKUP.match(text)) or bool(_STATEMENT.fullmatch(text)) or _log(text)


def _runs_on(lines: Sequence[str]) -> bool:
    """Whether sentences go on in the next line, or lines are those of a program."""
    goes = sum(
        len(line) > _LONG and not _SENTENCE_STOPS.search(line.rstrip()) and after[:1].islower() and " " in after.strip()
        for line, after in pairwise(lines)
    )
    program = sum(line[:2].isspace() and len(line.split()) > 1 for line in lines)
    return max(goes, program) >= _FEWEST and 4 * max(goes, program) >= len(lines)
