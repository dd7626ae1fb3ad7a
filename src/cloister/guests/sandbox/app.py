"""What runs inside WebAssembly: the guest's text, once, in an interpreter that nobody used before and nobody uses after.

Whatever is imported here is what a guest can import: there are no files to load anything else from.
"""

import __future__

import array
import base64
import bisect
import calendar
import cmath
import collections
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import graphlib
import hashlib
import heapq
import io
import itertools
import json
import math
import numbers
import operator
import random
import re
import statistics
import string
import sys
import textwrap
import typing
import unicodedata

with contextlib.suppress(ImportError):  # it is there inside the image alone
    import wit_world

_HELD: list[object] = [
    array,
    base64,
    bisect,
    calendar,
    cmath,
    collections,
    copy,
    csv,
    dataclasses,
    datetime,
    decimal,
    difflib,
    enum,
    fractions,
]
_HELD += [functools, graphlib, hashlib, heapq, itertools, math, numbers, operator, random, re, statistics, string, textwrap]
_HELD += [typing, unicodedata]
_PRINTED = 20_000
_UNREAD = __future__.annotations.compiler_flag
"""Annotations stay unread: what they name was imported at home."""


class _Printed(io.StringIO):
    """Takes what is printed, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() < _PRINTED:
            super().write(text[:_PRINTED])
        return len(text)


def _ask(sql: str, spend: object) -> object:
    told = json.loads(wit_world.ask(json.dumps({"sql": sql, "spend": str(spend)})))
    if "refused" in told:
        raise ValueError(told["refused"])
    return told


def _noise(law: str, scale: object) -> object:
    told = json.loads(wit_world.ask(json.dumps({"noise": law, "scale": str(scale)})))
    if "refused" in told:
        raise ValueError(told["refused"])
    return told["noise"]


def _plain(value: typing.Any) -> object:
    """Arrays and their numbers as lists and numbers."""
    return value.tolist()


def _where(error: Exception, lines: list[str]) -> str:
    """What went wrong and in which lines of the guest: traceback would look for files."""
    told, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<guest>" and trace.tb_lineno <= len(lines):
            told.append(f"line {trace.tb_lineno}: {lines[trace.tb_lineno - 1].strip()}")
        trace = trace.tb_next
    return "\n".join([*told[-5:], f"{type(error).__name__}: {error}"])


class WitWorld:
    """The one thing that the host can do: run a text."""

    def run(self, code: str, entry: str, argument: str) -> str:
        """The guest's value as JSON, or where it failed; and what it printed."""
        sys.path.clear()  # what is not here is not looked for in files
        printed = sys.stdout = sys.stderr = _Printed()
        told = {}
        try:
            scope: dict[str, typing.Any] = {"__name__": "guest", "ask": _ask, "noise": _noise}
            exec(compile(code, "<guest>", "exec", flags=_UNREAD), scope)  # noqa: S102 (this is the sandbox)
            told["value"] = json.dumps(scope[entry](*json.loads(argument)), default=_plain)
        except Exception as error:
            told["failed"] = _where(error, re.split(r"\r\n?|\n", code))[-4000:]
        told["printed"] = printed.getvalue()
        return json.dumps(told)
