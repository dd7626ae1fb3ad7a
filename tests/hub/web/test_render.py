"""A page: escaped, in the reader's language, with the caller's navigation, its tokens and what the page before left to say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from jinja2 import UndefinedError
from starlette.testclient import TestClient

from cloister.hub.hub import Caller
from cloister.hub.web.render import PAGE, environment
from tests.hub.web.browser import strict
from tests.hub.web.gallery import ADA, environment_of, make_gallery
from tests.tiers import some_by_day


@pytest.fixture
def client() -> TestClient:
    return TestClient(make_gallery())


def token_in(html: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', html)
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("path", ["/", "/?nobody", "/gallery", "/error/404", "/error/409", "/error/500"])
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_pages_hold_nothing_that_the_policy_forbids(client: TestClient, path: str, language: str) -> None:
    answer = client.get(path, headers={"Accept-Language": language})
    assert answer.headers["content-type"].startswith("text/html")
    strict(answer.text)


def test_what_is_forbidden_is_found() -> None:
    for page, fault in [
        ('<p style="color: red">', "style"),
        ("<button onclick='go()'>", "onclick"),
        ("<script>go()</script>", "inline <script>"),
        ("<style>p {}</style>", "inline <style>"),
        ('<img src="https://elsewhere.example/a.png">', "elsewhere"),
        ('<a href="javascript:go()">', "javascript"),
        ('<form method="post" action="/save"><input name="form_token" value=""></form>', "no token"),
    ]:
        with pytest.raises(AssertionError, match=fault):
            strict(page)


def test_a_name_that_was_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        environment("en").from_string("{{ forgotten }}").render()


def test_everything_is_escaped(client: TestClient) -> None:
    home = client.get("/").text
    assert "asks for &lt;hospital&gt;" in home
    assert "<hospital>" not in home
    assert environment("en").from_string("{{ _('%(a)s & more', a=a) }}").render(a="<b>") == "&lt;b&gt; &amp; more"


def test_the_language_follows_the_setting_then_the_cookie_then_the_browser() -> None:
    def tag(caller: Caller, cookie: str, accepted: str) -> str:
        client = TestClient(make_gallery(caller=caller), cookies={"cloister-language": cookie} if cookie else {})
        found = re.search(r'<html lang="([^"]+)"', client.get("/gallery", headers={"Accept-Language": accepted}).text)
        assert found is not None
        return found.group(1)

    chinese = replace(ADA, locale="zh_CN")
    assert tag(chinese, "en", "en") == "zh-Hans"
    assert tag(ADA, "zh_CN", "en") == "zh-Hans"
    assert tag(ADA, "", "fr, zh-CN;q=0.8, en;q=0.3") == "zh-Hans"
    assert tag(ADA, "xx", "fr") == "en"


def test_a_sentence_is_said_once_by_the_next_page(client: TestClient) -> None:
    token = token_in(client.get("/gallery").text)
    sent = client.post("/save", data={"form_token": token, "name": "<Lin>"}, follow_redirects=False)
    assert (sent.status_code, sent.headers["location"]) == (303, "/gallery")
    part = client.get("/progress", headers={"X-Fragment": "1"})
    assert "Saved for" not in part.text
    assert "Saved for &lt;Lin&gt;." in client.get("/gallery").text
    assert "Saved for" not in client.get("/gallery").text


def test_a_sentence_that_was_not_signed_here_is_not_said(client: TestClient) -> None:
    token = token_in(client.get("/gallery").text)
    client.post("/save", data={"form_token": token, "name": "Lin"}, follow_redirects=False)
    kept = client.cookies["cloister-flash"].strip('"')
    content, _, signature = kept.rpartition(".")
    for forged in (f"{content}x.{signature}", f"{content}.{'0' * 64}", content, "."):
        other = TestClient(make_gallery(), cookies={"cloister-flash": forged})
        assert "Saved for" not in other.get("/gallery").text


def test_a_card_has_its_own_values_and_its_order(client: TestClient) -> None:
    home = client.get("/").text
    titles = re.findall(r'class="card-title">([^<]+)<', home)
    assert titles == ["Requests", "Your budgets", "Jobs"]
    assert "No work is running." in home


def test_a_person_without_cards_is_told_the_next_step() -> None:
    home = TestClient(make_gallery(with_cards=False)).get("/").text
    assert "No open tasks yet" in home
    assert 'href="/account"' in home


def test_nobody_is_told_what_this_is(client: TestClient) -> None:
    page = client.get("/?nobody").text
    assert "Share what the data says, not the data." in page
    assert 'href="/login"' in page
    assert 'action="/logout"' not in page


def test_an_error_shows_its_parts(client: TestClient) -> None:
    page = client.get("/error/409")
    assert page.status_code == 409
    parts = "The query was refused", ">ε = 0.5</a>, and ", "0.2 in the field “Spend”", "the owner&#39;s allotment for analysts"
    for part in parts:
        assert part in page.text


def test_an_error_that_a_script_meets_is_its_parts_alone(client: TestClient) -> None:
    part = client.get("/error/409", headers={"X-Fragment": "1"}).text
    assert "it costs ε = 0.5" in part
    assert "<html" not in part
    assert "<h1" not in part


def test_what_a_page_depends_on_is_gone_after_it(client: TestClient) -> None:
    client.get("/gallery")
    with pytest.raises(LookupError):
        PAGE.get()


def test_files_are_kept_where_their_address_names_the_version(client: TestClient) -> None:
    addresses = re.findall(r'(?:href|src)="(/static/[^"#]+)', client.get("/gallery").text)
    assert {address.partition("?")[0] for address in addresses} >= {
        f"/static/{name}" for name in ("cloister.css", "page.js", "logo.svg")
    }
    for address in set(addresses):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/static/cloister.css").headers["cache-control"] == "no-cache"
    missing = client.get("/static/nothing.css?v=1")
    assert "immutable" not in missing.headers.get("cache-control", "")


@some_by_day("code", ["en", "zh_CN"], lambda code: code == "zh_CN")
def test_every_template_compiles(code: str) -> None:
    made = environment_of(code)
    names = made.list_templates()
    assert "base.html" in names
    for name in names:
        made.get_template(name)
