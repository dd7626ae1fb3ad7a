"""Many people who ask at once, as one process:

    python -m tests.hub.faults.clients FILE

FILE is JSON: `address`, `tokens`, `questions` (how many in all, the people share them), `out` (where each answer is written, as
a line of JSON), `first` (the number of the first question), `spend`, `seed`, `patient` (ask again, under the same key, while
the hub is away or busy with it), `again` (ask one in so many a second time, under its key, after it was answered), `keys`
(whether requests carry one at all), `later` (leave one in so many to a job), `pause` (seconds before each next question),
`stop` (a file: where it exists, no question is begun, and one that the hub is busy with is left open).
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

_AGAIN = (500, 502, 503, 504)
_PAUSE = 0.1


def question(number: int) -> str:
    """A question that no other number asks.

    >>> question(61)
    'SELECT COUNT(*) AS n FROM people WHERE age > 18 AND pay < 1.0'
    """
    return f"SELECT COUNT(*) AS n FROM people WHERE age > {17 + number % 60} AND pay < {(1 + number // 60) / 2}"


@dataclass
class Load:
    """What is to be done, and the numbers that are left."""

    address: str
    tokens: list[str]
    questions: int
    out: str
    first: int = 0
    spend: str = "0.001"
    seed: int = 0
    patient: bool = False
    again: int = 0
    keys: bool = True
    later: int = 0
    pause: float = 0.0
    stop: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: iter(()))

    @property
    def stopped(self) -> bool:
        """Whether to end."""
        return bool(self.stop) and Path(self.stop).exists()

    def __post_init__(self) -> None:
        self.numbers = iter(range(self.first, self.first + self.questions))


async def run(load: Load) -> None:
    """Everybody asks until no number is left."""
    limits = httpx.Limits(max_connections=len(load.tokens), max_keepalive_connections=len(load.tokens))
    with Path(load.out).open("w", buffering=1) as out:
        async with httpx.AsyncClient(base_url=load.address, limits=limits, timeout=60, verify=False, trust_env=False) as http:
            await asyncio.gather(*(_person(load, http, token, out) for token in load.tokens))


async def _person(load: Load, http: httpx.AsyncClient, token: str, out: Any) -> None:
    for number in load.numbers:
        if load.stopped:
            return
        told = await _asked(load, http, token, number)
        if load.again and number % load.again == load.seed % load.again and told["status"] in (201, 202):
            repeat = await _asked(load, http, token, number)
            told["again"] = repeat["digest"] == told["digest"]
        out.write(json.dumps(told) + "\n")
        await asyncio.sleep(load.pause)


async def _asked(load: Load, http: httpx.AsyncClient, token: str, number: int) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    if load.keys:
        headers["Idempotency-Key"] = f"key-{load.seed}-{number}"
    if load.later and number % load.later == 0:
        headers["Prefer"] = "respond-async"
    body = {"sql": question(number), "spend": load.spend}
    seen: Counter[str] = Counter()
    begun = time.perf_counter()
    while True:
        try:
            response = await http.post("/api/v1/questions", json=body, headers=headers)
        except httpx.TransportError as error:
            seen[type(error).__name__] += 1
            if load.patient:
                await asyncio.sleep(_PAUSE)
                continue
            return {"number": number, "status": 0, "code": type(error).__name__, "seen": seen, "digest": ""}
        told = _told(response)
        busy = told.get("code") == "conflict"
        if load.patient and (response.status_code in _AGAIN or (busy and not load.stopped)):
            seen[f"{response.status_code} {told.get('code', '')}"] += 1
            await asyncio.sleep(_PAUSE)
            continue
        return {
            "number": number,
            "status": response.status_code,
            "code": told.get("code", ""),
            "why": told.get("detail", ""),
            "release": told.get("id", ""),
            "job": told.get("job", ""),
            "person": load.tokens.index(token),
            "digest": hashlib.sha256(response.content).hexdigest(),
            "seconds": time.perf_counter() - begun,
            "seen": seen,
        }


def _told(response: httpx.Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def counted(received: list[dict[str, Any]]) -> Counter[str]:
    """How the questions ended.

    >>> counted([{"status": 201, "code": ""}, {"status": 409, "code": "budget-exceeded"}])
    Counter({'201': 1, '409 budget-exceeded': 1})
    """
    return Counter(f"{each['status']} {each['code']}".strip() for each in received)


def quantile(values: list[float], share: float) -> float:
    """The value under which this share of them lies.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return next(itertools.islice(ordered, max(0, -int(-len(ordered) * share // 1) - 1), None))


if __name__ == "__main__":
    asyncio.run(run(Load(**json.loads(Path(sys.argv[1]).read_text()))))
