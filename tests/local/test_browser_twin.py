"""The browser's twin makes the reports that Python makes, of the same words: in Node, and in Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloister.local.survey import Survey, collect
from scripts.local_vectors import FILE, everything, vectors

pytest.importorskip("playwright")
pytest.importorskip("uvicorn")

from tests.hub.web.browser import Guarded, browser, serve, visit  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
BROWSER = ROOT / "src" / "cloister" / "local" / "browser"
NODE = shutil.which("node")


def test_python_still_makes_the_reports_of_the_file() -> None:
    assert json.loads(json.dumps(vectors())) == json.loads(FILE.read_text(encoding="utf-8")), (
        "python -m scripts.local_vectors, if it was meant"
    )


def test_in_node() -> None:
    if NODE is None:
        assert os.environ.get("CLOISTER_REQUIRE_ENGINES") != "1", "Node is required here"
        pytest.skip("!!! Node is not here: the browser's twin is NOT TESTED (as root: apt-get install nodejs)")
    said = subprocess.run(
        [NODE, "--test", str(FILE.parent / "browser.test.mjs")], capture_output=True, text=True, check=False, timeout=120
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert "# pass 16" in said.stdout


def test_the_twin_depends_on_nothing_and_sends_nothing() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in BROWSER.glob("*.js"))
    assert text.count("import ") == text.count('} from "./cloister-local.js"') == 1
    for word in ("import(", "require(", "fetch(", "XMLHttpRequest", "sendBeacon", "WebSocket", "Math.random", "eval("):
        assert word not in text, word


def test_the_twin_is_in_the_package() -> None:
    from importlib.resources import files

    assert {each.name for each in (files("cloister.local") / "browser").iterdir()} >= {"cloister-local.js", "cloister-survey.js"}


class Files:
    """The twin, the vectors and an empty page."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                event = (await receive())["type"]
                await send({"type": f"{event}.complete"})
                if event == "lifespan.shutdown":
                    return
        body, kind = {
            "/cloister-local.js": ((BROWSER / "cloister-local.js").read_bytes(), b"text/javascript"),
            "/cloister-survey.js": ((BROWSER / "cloister-survey.js").read_bytes(), b"text/javascript"),
            "/vectors.json": (FILE.read_bytes(), b"application/json"),
            "/survey.json": (everything().to_json().encode(), b"application/json"),
        }.get(scope["path"], (b"<!doctype html><title>twin</title>", b"text/html"))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": body})


COMPARE = """async () => {
  const twin = { ...(await import("/cloister-local.js")), ...(await import("/cloister-survey.js")) };
  const vectors = await (await fetch("/vectors.json")).json();
  const wrong = [];
  for (const { client, place, words, report, odds } of vectors.reports) {
    const next = twin.listedWords(words);
    const same = JSON.stringify(twin.report(client, place, next)) === JSON.stringify(report) && next.used() === words.length;
    const [numerator, denominator] = twin.odds(client);
    if (!same || numerator * BigInt(odds[1]) !== BigInt(odds[0]) * denominator) wrong.push(client);
  }
  for (const { survey, answers, levels, words, report } of vectors.surveys) {
    const made = twin.respond(survey, answers, levels, { next: twin.listedWords(words) });
    if (JSON.stringify(made) !== JSON.stringify(report)) wrong.push(answers);
  }
  for (const { survey, levels, allowed } of vectors.sums) if (twin.spent(survey, levels).allowed !== allowed) wrong.push(levels);
  return { wrong, compared: vectors.reports.length + vectors.surveys.length };
}"""

MANY = """async () => {
  const twin = await import("/cloister-survey.js");
  const survey = await (await fetch("/survey.json")).json();
  const answers = { "yes-no": "yes", choice: "blue", several: ["a"], scale: null, number: 30, spread: 0.5, place: "2,3" };
  const mixed = Object.fromEntries(survey.questions.map(({ name }, index) => [name, index % 2 ? "open" : "careful"]));
  return Array.from({ length: 400 }, (_, index) => JSON.stringify(twin.respond(survey, answers, index % 4 ? "open" : mixed)));
}"""


def test_in_chromium(serve: Callable[[Any], str], visit: Callable[..., Guarded]) -> None:  # noqa: F811
    page = visit(serve(Files())).page()
    said = page.evaluate(COMPARE)
    assert said["wrong"] == []
    assert said["compared"] > 300


def test_what_chromium_sends_can_be_collected(serve: Callable[[Any], str], visit: Callable[..., Guarded]) -> None:  # noqa: F811
    """The browser's own randomness this time, so margins of 6 standard deviations: an estimate is off once in 10⁸ runs."""
    survey: Survey = everything()
    results = collect(survey, visit(serve(Files())).page().evaluate(MANY))
    assert (results.tally.n, dict(results.tally.refused), results.alarms) == (400, {}, [])
    for name, answer in (("yes-no", "yes"), ("choice", "blue"), ("several", "a"), ("scale", "no answer"), ("place", "2,3")):
        estimate = results[name].combined.estimate
        place = list(estimate.values).index(answer)
        assert abs(estimate.counts[place] - 400) < 6 * estimate.variances[place] ** 0.5 + 1, name
    assert results.tally.people("yes-no") == {"careful": 100, "open": 300}
    assert results.tally.people("choice") == {"careful": 0, "open": 400}
