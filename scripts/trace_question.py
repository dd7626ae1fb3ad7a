"""How far a question travels: calls, files and changes of room of one warm count, in Python and over HTTP.

    python scripts/trace_question.py [--calls]

A room is a top-level package of cloister; each of `hub/services` is one by itself. A change of room is a call of a function in
another room than the function that was called before it. Beside them stands how often facts are computed that need to be computed
once: how the person sees the tables, whether the aggregation may be asked, and what the policy says. `--calls` lists the changes
of room and the functions that are called most, for anyone who wants to shorten the way.

Warm means: the tables are prepared, the form of the text is known, and the question itself was never asked.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import cloister as cl

ROOT = Path(__file__).resolve().parents[1]
HOME = str(Path(cl.__file__).resolve().parent) + "/"
FACTS = {
    "seen": ("session/door.py", "seen"),
    "aggregation checked": ("tables/engines/request.py", "check"),
    "policy decided": ("hub/decisions/policy/decide.py", "decide_together"),
}
"""The functions that compute them."""
WARM = 4
"""Questions of the same form in advance: the first prepares the rows, the second teaches the form."""
ROWS = 1000


class Trace:
    """The calls of cloister's own functions while it is on."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()
        self.way: list[str] = []
        """The files in the order in which they ran, each as often as it was entered."""
        self._room = ""

    @property
    def calls(self) -> int:
        """How many."""
        return self.functions.total()

    @property
    def files(self) -> int:
        """In how many files."""
        return len({file for file, _ in self.functions})

    @property
    def facts(self) -> Mapping[str, int]:
        """How often each fact was computed."""
        return {name: self.functions[where] for name, where in FACTS.items()}

    @contextmanager
    def on(self) -> Iterator[None]:
        """Within it the calls of this thread are counted, and not what a collection of garbage ends of earlier work."""
        collects = gc.isenabled()
        gc.disable()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(None)
            if collects:
                gc.enable()

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME):
            return
        file, name = place_of(code)
        self.functions[file, name] += 1
        self.way += [file] if self.way[-1:] != [file] else []
        room = room_of(file)
        if self._room and room != self._room:
            self.changes[self._room, room] += 1
        self._room = room


def place_of(code: CodeType) -> tuple[str, str]:
    """The file of a function, from the package on, and its name."""
    return code.co_filename.removeprefix(HOME), code.co_name


def room_of(file: str) -> str:
    """The room that a file is in.

    >>> room_of("session/door.py"), room_of("errors.py"), room_of("hub/hub.py"), room_of("hub/services/asking/preview.py")
    ('session', 'errors', 'hub', 'hub/services/asking')
    """
    parts = file.removesuffix(".py").split("/")
    return "/".join(parts[:3]) if parts[0] == "hub" and parts[1] in ("services", "platform") and len(parts) > 3 else parts[0]


def texts() -> list[str]:
    """Some questions of one form, the last of which is traced."""
    return [f"SELECT COUNT(*) AS n FROM people WHERE age > {20 + number}" for number in range(WARM + 1)]


def in_python() -> Trace:
    """Of `session.sql`."""
    people = cl.PrivateTable({"age": [17 + n % 74 for n in range(ROWS)]}, columns={"age": cl.Integer(17, 90)}, size=ROWS)
    trace = Trace()
    with cl.Session({"people": people}, budget=cl.PureDP(10)) as session:
        *before, last = texts()
        for each in before:
            session.sql(each, spend="0.1")
        with trace.on():
            session.sql(last, spend="0.1")
    return trace


def over_http() -> Trace:
    """Of a hub's application, from the request to the answer: in the loop's thread, and in the one that answers."""
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    from _hub import furnished

    from cloister.hub.app import make_app
    from cloister.hub.hub import Hub
    from cloister.hub.middleware import Middleware
    from cloister.hub.services import all_services
    from cloister.hub.settings import Settings

    rows = "age\n" + "".join(f"{17 + n % 74}\n" for n in range(ROWS))
    declaration = {"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}, "size": ROWS}
    trace, answered = Trace(), Middleware._answered

    def traced(*given: Any) -> Any:
        with trace.on():
            return answered(*given)

    with tempfile.TemporaryDirectory() as folder, Hub(Settings(data=Path(folder), workers=0), all_services()) as hub:
        token = furnished(hub, rows, declaration)
        app = make_app(hub)

        async def ask_all() -> None:
            *before, last = texts()
            for each in before:
                await post(app, each, token)
            Middleware._answered = traced  # type: ignore[method-assign]
            try:
                with trace.on():
                    await post(app, last, token)
            finally:
                Middleware._answered = answered  # type: ignore[method-assign]

        asyncio.run(ask_all())
    return trace


async def post(app: Callable[..., Awaitable[None]], sql: str, token: str) -> None:
    """One question to the application, as a web server passes it on."""
    body = json.dumps({"sql": sql, "spend": "0.1", "purpose": "a trace"}).encode()
    told = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in {**told, "authorization": f"Bearer {token}"}.items()]
    path = "/api/v1/questions"
    scope = {"type": "http", "method": "POST", "scheme": "http", "http_version": "1.1", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        if message.get("status", 201) != 201:
            raise RuntimeError(f"the hub answered {message['status']}")

    await app(scope, receive, send)


def main() -> None:
    """Trace both, and print."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--calls", action="store_true", help="list calls between rooms, and what is called most")
    given = arguments.parse_args()
    for name, trace in (("in Python", in_python()), ("over HTTP", over_http())):
        facts = ", ".join(f"{fact} {times}×" for fact, times in trace.facts.items())
        print(f"{name}: {trace.calls} calls, {trace.files} files, {trace.changes.total()} changes of room; {facts}")
        if given.calls:
            for (one, other), times in trace.changes.most_common(40):
                print(f"  {times:4} {one} → {other}")
            for (file, function), times in trace.functions.most_common(40):
                print(f"  {times:4} {file}: {function}")


if __name__ == "__main__":
    main()
