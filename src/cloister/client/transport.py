"""Requests to a hub, and what to do when the connection is lost: the same request with the same key, a few times.

Guarantee. Every question bears a random Idempotency-Key. The hub stores its answer under the key before a byte of it leaves, so a
request that is sent again gets the same bytes, is charged once, and draws no second noise. A refusal is never sent again: only a
connection that broke, an answer that did not come, and (after one of these) the hub's word that the first request is still being
worked on.
"""

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from fractions import Fraction
from typing import Any

import httpx

from cloister.client.refusals import HubError, HubUnreachable, refusal_of
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import default_random

_WAITS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt: in all, longer than a hub takes to start again."""
_LOOKS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two looks at a job; then always the last."""
_LOST = frozenset({500, 502, 503, 504})
"""What a proxy says when it lost the hub, and a hub that is stopped while it answers: in no words of the hub's."""
_NO_HUB = {"detail": "a proxy or another server answered, not a hub", "instead": "the address of the hub, or later again"}
_ODD = "not plain data: texts, finite numbers and lists of them"
_UNVERIFIED = "CERTIFICATE_VERIFY_FAILED"


def new_key() -> str:
    """A key for one question: 128 random bits.

    >>> len(new_key()), new_key() == new_key()
    (22, False)
    """
    return base64.urlsafe_b64encode(default_random().bytes(16)).rstrip(b"=").decode()


class Transport:
    """One hub over a pool of connections, for any number of threads."""

    def __init__(
        self, client: httpx.Client, *, timeout: float, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float]
    ) -> None:
        self._client = client
        self._timeout = timeout
        self._sleep = sleep
        self._now = now
        self._closed = threading.Event()
        self._process = os.getpid()

    @property
    def address(self) -> str:
        """Where the hub is."""
        return str(self._client.base_url).rstrip("/")

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """What is found under an address of the API."""
        return self._asked("GET", path, None, {}, query)[1]

    def file(self, path: str, **query: str) -> bytes:
        """The bytes of a file that is found there."""
        return self._asked("GET", path, None, {}, query, raw=True)[0]

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> dict[str, Any]:
        """What the hub answers to a body. Without a key the request must be one that changes nothing."""
        return self._asked("POST", path, body, {"Idempotency-Key": key} if key else {}, {})[1]

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Put a body in the place of what is there; twice is as good as once."""
        self._asked("PUT", path, body, {}, {}, raw=True)

    def ordered(
        self, path: str, order: Mapping[str, Any], progress: Callable[[str], None] | None, what: str, again: str
    ) -> Mapping[str, Any]:
        """The result of an order; `progress` hears each stage. `what` and `again` are said where its job was cancelled. Who is
        interrupted cancels it there: what it has charged or marked stays so."""
        job = self.post(path, order, key=new_key())["job"]
        try:
            return self._awaited(job, progress, what=what, instead=f"session.{again}(…) once more")
        except KeyboardInterrupt:
            with suppress(CloisterError):
                self.post(f"/jobs/{job}/cancel", {})
            raise

    def _awaited(self, job: str, progress: Callable[[str], None] | None, *, what: str, instead: str) -> Mapping[str, Any]:
        waits, told = iter(_LOOKS), ""
        while True:
            found = self._seen(job)
            state, stage = found["state"], found.get("stage") or found["state"]
            if stage != told and state in ("waiting", "running"):
                told = stage
                if progress is not None:
                    progress(stage)
            if state == "done":
                result: Mapping[str, Any] = found["result"]
                return result
            if state == "failed":
                problem = found.get("problem") or {}
                raise refusal_of(int(problem.get("status", 500)), problem)
            if state == "cancelled":
                raise InvalidParameter(what, why="its job was cancelled at the hub", instead=instead)
            self._sleep(next(waits, _LOOKS[-1]))

    def _seen(self, job: str) -> dict[str, Any]:
        """How far a job is. A hub that cannot answer now is asked again, then the job is named: an order that is sent again
        is another job, and another charge."""
        waits, ends = iter(_WAITS), self._now() + self._timeout
        while True:
            try:
                return self.get(f"/jobs/{job}")
            except HubError as error:
                seconds = next(waits, None)
                if isinstance(error, HubUnreachable) or seconds is None or self._now() + seconds > ends:
                    again = f"job {job} goes on at the hub, and its result is kept there: see /jobs/{job}"
                    raise type(error)(error.what, why=error.why, instead=again) from None
                self._sleep(seconds)

    def close(self) -> None:
        """Let go of the connections."""
        self._closed.set()
        self._client.close()

    def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        *,
        raw: bool = False,
    ) -> tuple[bytes, dict[str, Any]]:
        """The bytes of an answer, and the object that they stand for; with `raw` they may stand for none."""
        if self._closed.is_set() or os.getpid() != self._process:  # over the connections of another, each would read its answers
            why = "the session is closed" if self._closed.is_set() else "the session was opened before this process was forked"
            raise InvalidParameter("The query is invalid", why=why, instead="cloister.connect(…)")
        sent = body and {name: _plain(name, value) for name, value in body.items()}
        try:
            request = self._client.build_request(method, f"/api/v1{path}", json=sent, headers=headers, params=query)
        except (TypeError, ValueError, httpx.InvalidURL):
            why = f"a value of it is {_ODD}"
            raise InvalidParameter("The request is invalid", why=why, instead="its text or its number") from None
        lost, waits, ends = False, iter(_WAITS), self._now() + self._timeout
        while True:
            try:
                answer = self._client.send(request)
            except httpx.TransportError as error:
                if _UNVERIFIED in str(error):  # and so it would be again
                    raise _unreachable(error, path) from None
                self._wait(next(waits, None), ends, error, path)
                lost = True
                continue
            except httpx.RequestError:
                raise no_answer("it can't be decoded") from None
            found = _document(answer)
            if answer.is_success and (raw or found is not None):
                return answer.content, Reply() if found is None else found
            if answer.status_code in _LOST and found is None:
                self._wait(next(waits, None), ends, None, path)
                lost = True
            elif lost and answer.status_code == 409 and found is not None and found.get("code") == "conflict":
                self._wait(_WAITS[2], ends, None, path)  # our own first request is still being worked on
            else:
                raise refusal_of(answer.status_code, found or _NO_HUB)

    def _wait(self, seconds: float | None, ends: float, error: httpx.TransportError | None, path: str) -> None:
        if seconds is None or self._now() + seconds > ends:
            raise _unreachable(error, path) from None
        self._sleep(seconds)


def _plain(name: str, value: Any) -> Any:
    """A value of a body as JSON has it; arrays and columns of others are lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(str(key), each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Set):
        return [_plain(name, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str | Fraction):
        return str(value) if isinstance(value, Fraction) else value
    raise InvalidParameter(f"{name}= is invalid", why=f"it is {_ODD}", instead="its text or its number")


class Reply(dict[str, Any]):
    """What a hub said; what it lacks is told in words."""

    def __missing__(self, key: str) -> Any:
        raise no_answer(f"it lacks {key!r}")


def no_answer(why: str) -> HubError:
    """What answers is no hub, or one of another version."""
    return HubError("The hub's answer is invalid", why=why, instead="the address of a hub, and the version that it runs")


def _document(answer: httpx.Response) -> dict[str, Any] | None:
    """The JSON object of an answer; None where it is none, as when a proxy answers in the hub's place."""
    if "json" not in answer.headers.get("content-type", ""):
        return None
    try:
        found = json.loads(answer.content, object_hook=Reply)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unreachable(error: httpx.TransportError | None, path: str) -> HubUnreachable:
    words = {
        httpx.ConnectTimeout: "nothing answers at its address",
        httpx.ReadTimeout: "no answer came in time",
        httpx.ConnectError: "no connection could be made",
    }
    why = next((said for kind, said in words.items() if isinstance(error, kind)), "the connection was lost, again and again")
    if _UNVERIFIED in str(error):
        why = "its certificate could not be verified"
    instead = "the same question again later: what was charged is answered from the ledger, at no further cost"
    if not path.startswith("/questions"):
        instead = "the same again later; what was ordered may go on there, and another order is charged again: see /jobs first"
    return HubUnreachable("The hub was not reached", why=why, instead=instead)
