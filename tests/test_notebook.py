"""Charts in a notebook and in a saved page: drawn with no network, by scripts that are in them."""

from __future__ import annotations

import importlib.util
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from playwright.sync_api import Browser, Route

from cloister import notebook
from cloister.notebook import offline
from tests.hub.web.browser import browser  # noqa: F401

pytestmark = pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="vl-convert is not installed")
FETCHED = re.compile(r"""\bsrc\s*=\s*["']?\s*(?:https?:)?//|\bimport\s*\(?\s*["'](?:https?:)?//|cdn\.|jsdelivr|unpkg|requirejs""")


def bars(key: str = "a") -> alt.Chart:
    return alt.Chart(alt.Data(values=[{"key": key, "n": 3}, {"key": "b", "n": 5}])).mark_bar().encode(x="key:N", y="n:Q")


def released() -> Any:
    from cloister.session.examples import small_release

    return small_release().plot()


def afforded() -> Any:
    from cloister.session import Count, Question
    from cloister.session.examples import small_door

    with small_door() as door:
        return door.afford(Question(table="people", statistics=(Count(),)), spends=["0.1", "1"]).plot()


def reported() -> Any:
    from cloister.anonymize import Anonymizer, KAnonymity

    anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
    anonymizer.fit_transform({"age": [30, 31, 60, 61]})
    return anonymizer.report_.chart()


def advised() -> Any:
    from cloister.local import choose

    return choose(["a", "b", "c"], epsilon=1, people=1000).chart()


def surveyed() -> Any:
    from cloister.local.survey import Survey, YesNo, collect

    survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    return collect(survey, []).chart("copied")


def curved() -> Any:
    from fractions import Fraction

    from cloister.learn.assessment.curve import Curve, Point

    points = (Point(epsilon=Fraction(1), values=(0.5, 0.7)), Point(epsilon=Fraction(2), values=(0.6, 0.8)))
    return Curve(model="GaussianNB", measure="accuracy", rows="public rows", delta=None, plain=None, points=points).chart()


CHARTS = [released, afforded, reported, advised, surveyed, curved]


@pytest.mark.parametrize("made", CHARTS, ids=lambda made: made.__name__)
def test_a_chart_fetches_no_script(made: Callable[[], Any], tmp_path: Path) -> None:
    chart = made()
    chart.save(tmp_path / "chart.html")
    for page in (chart._repr_mimebundle_()["text/html"], chart.to_html(), (tmp_path / "chart.html").read_text(encoding="utf-8")):
        assert FETCHED.findall(page) == []
        assert "window.vegaEmbed" in page


def test_what_fetches_is_found() -> None:
    assert FETCHED.findall(bars().to_html())
    assert FETCHED.findall(bars()._repr_mimebundle_()["text/html"])


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[[str], Any]]:  # noqa: F811
    """A page of such text in a browser whose every request ends; afterwards: none was made, no script failed."""
    context = browser.new_context(offline=True)
    asked: list[str] = []
    failed: list[str] = []

    def stop(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    context.route("**/*", stop)
    context.on("weberror", lambda error: failed.append(str(error.error)))

    def open_one(text: str) -> Any:
        page = context.new_page()
        page.set_content(text)
        return page

    yield open_one
    context.close()
    assert asked == []
    assert failed == []


def test_a_notebook_draws_it_with_the_network_off(show: Callable[[str], Any]) -> None:
    pieces = [chart._repr_mimebundle_()["text/html"] for chart in (released(), reported(), released())]
    page = show("<!DOCTYPE html><p>a notebook</p>" + "".join(f"<section>{piece}</section>" for piece in pieces))
    page.wait_for_function("document.querySelectorAll('section canvas, section svg.marks').length === 3")
    assert page.evaluate("[...document.querySelectorAll('section')].every(each => each.querySelector('canvas, svg.marks'))")
    assert page.locator(".vega-actions a").count()
    assert not page.locator(".vega-actions a", has_text="Editor").count(), "that entry sends the numbers to a public site"


def test_a_saved_page_draws_it_with_the_network_off(show: Callable[[str], Any]) -> None:
    page = show(released().to_html())
    page.wait_for_selector("canvas, svg.marks")


def test_a_name_in_the_data_is_no_script(show: Callable[[str], Any]) -> None:
    page = show(offline(bars("</script><script>window.broken = 1</script><!--")).to_html())
    page.wait_for_selector("canvas, svg.marks")
    assert page.evaluate("window.broken") is None


def test_changed_copied_and_joined_it_stays_one() -> None:
    chart = offline(bars())
    changed = [
        chart.properties(width=100),
        chart.interactive(),
        chart + bars("c"),
        chart | bars("c"),
        chart & bars("c"),
        chart.copy(),
        pickle.loads(pickle.dumps(chart)),
    ]
    assert [type(each).__name__ for each in changed if FETCHED.findall(each._repr_mimebundle_()["text/html"])] == []
    assert changed[-1].to_dict() == chart.to_dict() == bars().to_dict()
    assert isinstance(chart, alt.Chart)
    assert type(offline(chart)) is type(chart)


def test_a_renderer_that_the_caller_enabled_is_used() -> None:
    with alt.renderers.enable("mimetype"):
        assert offline(bars())._repr_mimebundle_() == bars()._repr_mimebundle_()


def test_without_the_scripts_a_notebook_gets_the_chart_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_drawable", lambda: False)
    bundle = offline(bars())._repr_mimebundle_()
    assert "text/html" not in bundle
    assert bundle["application/vnd.vegalite.v5+json"] == bars().to_dict()
    assert "vl-convert-python" in bundle["text/plain"]
