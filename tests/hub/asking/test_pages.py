"""The pages: the workbench without scripts, the release, lists; what a form sent twice does, and what a page never says."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from cloister.hub.ids import new_id
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.asking import pages
from cloister.hub.services.asking.answers import asked
from cloister.hub.web.forms import TOKEN_FIELD
from cloister.session import Release
from cloister.session.examples import small_release
from tests.hub.asking.conftest import BY_SEX, COUNT, Stage
from tests.hub.house import Visitor
from tests.hub.web.browser import strict

FORM = {"sql": BY_SEX, "spend": "0.25", "confidence": "0.95", "purpose": "a look"}


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert found is not None
    return html.unescape(found[1])


def send(who: Visitor, path: str, form: dict[str, Any], page: str = "/ask", **headers: str) -> Any:
    """Send a form as a page of this browser made it."""
    made = who.client.get(page).text
    keyed = {"key": hidden(made, "key")} if page == "/ask" else {}
    return who.client.post(path, data={TOKEN_FIELD: hidden(made, TOKEN_FIELD), **keyed, **form}, headers=headers)


def test_the_workbench_offers_what_is_open(stage: Stage):
    page = stage.ana.client.get("/ask")
    assert "Without JavaScript these buttons insert nothing" in page.text
    assert page.status_code == 200
    strict(page.text)
    for text in ("people", 'data-insert="age"', 'data-into="sql"', "SELECT sex, COUNT(*) AS n", 'data-live="/ask/explain"'):
        assert text in page.text
    assert "No data set is open to you yet" in stage.house.person("analyst").client.get("/ask").text


def test_the_workbench_shows_no_column_that_was_not_granted(stage: Stage):
    rea = stage.house.person("analyst")
    stage.house.grant(stage.people, rea, by=stage.owner, columns=["age"])
    page = rea.client.get("/ask").text
    assert 'data-insert="age"' in page
    assert 'data-insert="pay"' not in page


def test_explaining_without_scripts_is_the_page_with_the_plan(stage: Stage):
    page = send(stage.ana, "/ask/explain", FORM)
    assert page.status_code == 200
    strict(page.text)
    for text in (
        "Expected answer",
        "±",
        "Budget of people, with this answer",
        "nothing was spent and no row was read",
        "With this answer an attacker is right at most 56.3 % of the time",
        "Guessing which of two values a person in the data has is right at most 62.3 % of the time",
        FORM["purpose"],
    ):
        assert text in page.text
    assert stage.charges == []


def test_explaining_as_one_types_is_a_part_of_the_page(stage: Stage):
    part = send(stage.ana, "/ask/explain", FORM, **{"X-Fragment": "1"})
    assert "Expected answer" in part.text
    assert "<html" not in part.text
    refused = send(
        stage.ana,
        "/ask/explain",
        FORM | {"sql": "SELECT sex,\n AVG(height) AS h FROM people GROUP BY sex"},
        **{"X-Fragment": "1"},
    )
    assert refused.status_code == 200
    assert "Line 2, column 6" in refused.text
    assert "<mark>height</mark>" in refused.text
    assert send(stage.ana, "/ask/explain", FORM | {"sql": ""}, **{"X-Fragment": "1"}).status_code == 200
    assert stage.charges == []


def test_a_wanted_margin_stands_in_the_place_of_the_spend(stage: Stage):
    part = send(stage.ana, "/ask/explain", FORM | {"sql": COUNT, "within": "50", "by": "margin"}, **{"X-Fragment": "1"}).text
    assert "± 50" in part
    assert send(stage.ana, "/ask/explain", FORM | {"within": "fifty", "by": "margin"}).status_code == 422
    assert send(stage.ana, "/ask/explain", FORM | {"sql": COUNT, "within": "1,000", "by": "margin"}).status_code == 200


def test_a_rehearsal_is_marked_as_made_up(stage: Stage):
    page = send(stage.ana, "/ask/rehearse", FORM)
    assert page.status_code == 200
    assert "These rows are made up" in page.text
    assert stage.charges == []


def test_running_leads_to_the_release(stage: Stage):
    answer = send(stage.ana, "/ask", FORM)
    assert answer.status_code == 303, answer.text
    page = stage.ana.client.get(answer.headers["location"])
    assert page.status_code == 200
    strict(page.text)
    for text in ("±", "ε\u00a0=\u00a00.25", "Digest of the plan", "Derived from", "people: sex", "/chart.svg", BY_SEX, "a look"):
        assert text in html.unescape(page.text)
    assert stage.spent == "ε = 0.25"


def test_a_form_that_is_sent_twice_is_charged_once(stage: Stage):
    made = stage.ana.client.get("/ask").text
    form = {TOKEN_FIELD: hidden(made, TOKEN_FIELD), "key": hidden(made, "key"), **FORM, "sql": COUNT}
    first, second = (stage.ana.client.post("/ask", data=form) for _ in range(2))
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    assert len(stage.charges) == 1
    assert stage.ana.client.post("/ask", data=form | {"spend": "0.5"}).status_code == 409
    assert stage.ana.client.post("/ask", data={**form, "key": ""}).status_code == 422
    assert len(stage.charges) == 1


def test_a_form_of_another_page_is_denied(stage: Stage):
    assert stage.ana.client.post("/ask", data=FORM | {"key": "k"}).status_code == 403
    assert stage.charges == []


def test_a_refused_question_is_shown_again_with_what_was_wrong(stage: Stage):
    page = send(stage.ana, "/ask", FORM | {"spend": "3"})
    assert page.status_code == 409
    assert html.escape(BY_SEX, quote=False) in page.text or BY_SEX in page.text
    assert "of its budget of" in page.text
    assert stage.charges == []


def test_a_long_question_becomes_a_job(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "LONG", 1.0)
    answer = send(stage.ana, "/ask", FORM)
    assert re.fullmatch(r"/jobs/[\w-]+", answer.headers["location"])
    assert Workers(stage.hub, 0).run_one()
    assert "/releases/" in stage.ana.client.get(answer.headers["location"]).text
    assert len(stage.charges) == 1


def test_a_question_is_saved_and_asked_again(stage: Stage):
    saved = send(stage.ana, "/ask/save", FORM | {"title": "By sex"})
    assert saved.status_code == 303
    again = stage.ana.client.get(saved.headers["location"]).text
    assert BY_SEX in html.unescape(again)
    listed = stage.ana.client.get("/questions").text
    strict(listed)
    assert "By sex" in listed
    number = saved.headers["location"].rpartition("=")[2]
    removed = send(stage.ana, f"/questions/{number}/remove", {}, page="/questions")
    assert removed.status_code == 303
    assert "By sex" not in stage.ana.client.get("/questions").text


def test_the_release_at_another_confidence(stage: Stage):
    told = stage.ask(BY_SEX, "0.5")
    page = stage.ana.client.get(f"/releases/{told['id']}?confidence=0.99&joint=true").text
    wide = stage.get(f"/releases/{told['id']}/margins?confidence=0.99&joint=true").json()["margins"]["n"][0]
    assert f"± {wide:.0f}<" in page
    assert "margins of error at 99 % joint confidence" in page


def test_drowned_cells_are_marked_and_explained(stage: Stage):
    release = small_release()
    [name] = release.readings
    known = replace(release, readings={name: replace(release.readings[name], values=np.array([3, 100]))})
    number = kept(stage, known)
    for confidence, marked in (("0.95", True), ("0.51", False)):  # margins of 6 and of 1
        page = stage.ana.client.get(f"/releases/{number}?confidence={confidence}").text
        assert ("The noise may be larger than the value" in page) is marked
        assert ("Flagged cells are mostly noise" in page) is marked


def kept(stage: Stage, release: Release) -> str:
    """A release of Ana's whose noise the test knows."""
    number = new_id()
    with stage.hub.database.begin() as db:
        db.add(
            StoredRelease(
                id=number,
                person=stage.ana.id,
                data_sets=[],
                cost={},
                body=release.to_json().encode(),
                policy={},
                created=stage.hub.now(),
            )
        )
    return number


def test_the_chart_is_svg_for_both_schemes_and_drawn_once(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    from cloister.hub.services.asking import charts

    told = stage.ask(BY_SEX, "0.5")
    drawn: list[float] = []
    real = charts._drawn
    monkeypatch.setattr(charts, "_drawn", lambda part, confidence, *how: drawn.append(confidence) or real(part, confidence, *how))
    path = f"/releases/{told['id']}/chart.svg"
    first, second = (stage.ana.client.get(path) for _ in range(2))
    assert first.headers["content-type"] == "image/svg+xml"
    assert first.content == second.content
    assert b"prefers-color-scheme: dark" in first.content
    assert "sandbox" in first.headers["content-security-policy"]
    stage.ana.client.get(f"{path}?confidence=0.9")
    assert drawn == [0.95, 0.9]
    assert stage.house.person("analyst").client.get(path).status_code == 404


def test_sharing_says_the_same_whether_or_not_anybody_has_the_address(stage: Stage):
    told = stage.ask(BY_SEX, "0.5")
    page = f"/releases/{told['id']}"
    stage.house.person("analyst", email="bob@example.org")
    said = []
    for email in ("bob@example.org", "nobody@example.org"):
        answer = send(stage.ana, f"{page}/share", {"email": email}, page=page)
        assert answer.headers["location"] == page
        said.append(re.search(r'role="status">(.*?)</div></div>', stage.ana.client.get(page).text, re.DOTALL)[1])
    assert said[0] == said[1]
    wrong = send(stage.ana, f"{page}/share", {"email": "bob at example.org"}, page=page)
    assert (wrong.status_code, 'value="bob at example.org"' in wrong.text) == (422, True), "what was typed stays"
    assert send(stage.ana, f"{page}/withdraw", {"email": "bob@example.org"}, page=page).status_code == 303
    assert "bob@example.org" not in stage.ana.client.get(page).text
    assert send(stage.ana, f"{page}/title", {"title": "By sex"}, page=page).status_code == 303
    assert "<h1>By sex</h1>" in stage.ana.client.get(page).text


def test_the_list_is_searched_and_turned(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    from cloister.hub.releases import pages

    monkeypatch.setattr(pages, "_PAGE", 2)
    for each in (20, 21, 22):
        stage.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {each}", "0.01")
    page = stage.ana.client.get("/releases").text
    strict(page)
    older = html.unescape(re.search(r'rel="next" href="([^"]+)"', page)[1])
    assert page.count("/releases/") == 2
    assert stage.ana.client.get(older).text.count('scope="row"') == 1
    assert stage.ana.client.get("/releases?search=21").text.count('scope="row"') == 1
    assert "No matches" in stage.ana.client.get("/releases?search=nothing").text
    assert "No one has shared an answer with you" in stage.ana.client.get("/releases?which=shown").text


def test_what_people_wrote_is_text_on_every_page(stage: Stage):
    bad = "<script>alert(1)</script>"
    told = stage.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > 20 /* {bad} */", "0.1", purpose=bad)
    stage.post(f"/releases/{told['id']}/title", {"title": bad})
    send(stage.ana, "/ask/save", FORM | {"title": bad, "sql": f"{COUNT} -- {bad}"})
    for path in ("/releases", f"/releases/{told['id']}", "/questions", f"/ask?release={told['id']}", "/"):
        page = stage.ana.client.get(path).text
        assert bad not in page
        strict(page)


def test_pictures_speak_the_readers_language(stage: Stage):
    """The library's own words, that is; what the data call themselves stays, and what was drawn once is told in each language."""
    told = stage.ask(BY_SEX, "0.5")
    path = f"/releases/{told['id']}/chart.svg"
    chinese, english = (stage.ana.client.get(path, headers={"accept-language": each}).text for each in ("zh-CN", "en"))
    assert "误差线置信度" in chinese
    assert "error bars" in english
    assert ">sex<" in chinese
    assert not re.search(">[^<]*error bars", chinese)
    form = {**FORM, "sql": "SELECT sex AS noise, COUNT(*) AS rows FROM people GROUP BY sex"}
    plan = html.unescape(send(stage.ana, "/ask/explain", form, **{"accept-language": "zh-CN"}).text)
    drawn = unquote(re.search(r'src="data:image/svg[^,]*,([^"]+)"', plan)[1])
    for said in (">精确测量<", ">每一行代表一个人<", "没有消耗任何预算"):
        assert said in drawn
    assert "nothing was spent" not in drawn


def test_pages_in_chinese_stand(stage: Stage):
    told = stage.ask(BY_SEX, "0.5")
    for path in ("/ask", "/releases", f"/releases/{told['id']}", "/questions"):
        page = stage.ana.client.get(path, headers={"accept-language": "zh-CN"})
        assert page.status_code == 200
        assert 'lang="zh' in page.text


def test_an_answer_is_titled_in_words_with_its_sql_below(stage: Stage):
    told = stage.ask("SELECT sex, COUNT(*) AS n FROM people WHERE age > 40 GROUP BY sex", "0.5")
    named = stage.ask(COUNT, "0.1")
    stage.post(f"/releases/{named['id']}/title", {"title": "All of them"})
    said = {"en": "Count of people by sex, where age &gt; 40", "zh-CN": "people 的计数，按 sex 分组，条件为 age &gt; 40"}
    for language, title in said.items():
        for path in ("/", "/releases"):
            page = stage.ana.client.get(path, headers={"accept-language": language}).text
            assert f'<a href="/releases/{told["id"]}">{title}</a>' in page
            assert f'<a href="/releases/{named["id"]}">All of them</a>' in page
            assert page.count('<code class="small soft sql">SELECT') == 2
            strict(page)
        assert f"<h1>{title}</h1>" in stage.ana.client.get(f"/releases/{told['id']}", headers={"accept-language": language}).text


@pytest.mark.parametrize(
    ("sql", "title"),
    [
        (
            "SELECT MEDIAN(age), MODE(sex), MIN(age), MAX(age), STDDEV(age) FROM people",
            "Median of age · Mode of sex · Minimum of age and 2 more",
        ),
        ("SELECT CORR(age, pay) FROM people AS p JOIN visits AS v USING (id)", "Correlation of age and pay"),
        ("SELECT COUNT(*) FROM people AS p JOIN visits AS v USING (id)", "Count of rows"),
        ("SELECT COUNT(age) FILTER (WHERE sex = 'f') AS n FROM people", "Count of age, where sex = 'f'"),
        ("SELECT town, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM people GROUP BY town", "Quantile of age by town"),
        (f"SELECT SUM(pay) FROM people WHERE age IN ({', '.join(map(str, range(40)))})", "Sum of pay, with a condition"),
        ("SELECT SUM(pay) / COUNT(*) FROM people", ""),
        ("SELECT sex FROM people", ""),
        ("SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people", ""),
        ("'", ""),
    ],
)
def test_a_title_says_what_was_asked_or_nothing(sql: str, title: str):
    assert asked(sql, str) == title
