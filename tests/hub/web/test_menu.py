"""The menu: a group for each link, few entries for each role, help on each page, and words that are explained on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from cloister.hub.decisions.policy.actions import ROLES
from cloister.hub.hub import Caller
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.services import all_services
from cloister.hub.web.languages import LANGUAGES, language_of
from cloister.hub.web.menu import EVERYWHERE, GROUPS, OWN, help_for, menu_of
from cloister.hub.web.render import TEMPLATES, is_open, role_title
from cloister.hub.web.terms import TERMS, Marked
from tests.hub.house import Clock, House, Visitor
from tests.hub.web.browser import Guarded, accessible, browser, serve, visit  # noqa: F401
from tests.hub.web.gallery import ADA, LINKS, make_gallery
from tests.tiers import some_by_day

DOCS = Path(__file__).resolve().parents[3] / "docs"
MOST = 7
SERVICES = all_services()
ALL_LINKS = [link for service in SERVICES for link in service.links]
NO_PAGES = {"/healthz", "/metrics"}
Visit = Callable[..., Guarded]


# -- what services declare


def test_every_link_of_a_service_names_a_group() -> None:
    assert len(ALL_LINKS) > 30
    known = {group.name for group in GROUPS} | {"account"}
    assert {link.path: link.group for link in ALL_LINKS if link.group not in known} == {}
    assert {group.name for group in GROUPS} <= {link.group for link in ALL_LINKS}, "no group is empty"


def test_every_page_of_the_documentation_that_is_named_exists() -> None:
    named = {link.help for link in ALL_LINKS} | {guide.help for service in SERVICES for guide in service.guides}
    named |= {*OWN.values(), *(page for _, page in EVERYWHERE)}
    assert {page for page in named if not (DOCS / f"{page}.md").is_file()} == set()


@pytest.mark.parametrize("roles", [(), *((role,) for role in ROLES), tuple(ROLES)], ids=lambda roles: "+".join(roles) or "none")
def test_no_menu_has_more_than_seven_entries(roles: tuple[str, ...]) -> None:
    menu = menu_of(ALL_LINKS, partial(is_open, replace(ADA, roles=frozenset(roles))), "/")
    assert len(menu.entries) + 1 <= MOST, "the first page is one too"
    assert [entry.title for entry in menu.entries if len(entry.links) > MOST] == []
    assert len(menu.account) <= MOST


def test_the_menu_shows_what_the_caller_may_do_and_where_they_are() -> None:
    def titles(caller: Caller) -> list[str]:
        return [link.title for entry in menu_of(LINKS, partial(is_open, caller), "/").entries for link in entry.links]

    assert "Ask" in titles(ADA)
    assert "Hub settings" not in titles(ADA)
    assert "Hub settings" in titles(replace(ADA, roles=frozenset({"administrator"})))

    menu = menu_of(LINKS, partial(is_open, ADA), "/ask/saved")
    assert [entry.title for entry in menu.entries if entry.current] == ["Ask"]
    assert [link.title for entry in menu.entries for link in entry.links if link.current] == ["Ask"]
    assert not any(entry.current for entry in menu_of(LINKS, partial(is_open, ADA), "/asking").entries)


def test_a_group_of_one_link_is_that_link() -> None:
    html = TestClient(make_gallery()).get("/gallery").text
    assert '<summary class="current">' not in html
    assert re.search(r'<li><a href="/gallery" aria-current="page">', html)
    assert html.count("<details name=") == 2 * 2, "two groups of several links, in the menu at the side and in that of a phone"


def test_a_visitor_has_no_menu(tmp_path: Path) -> None:
    html = TestClient(make_gallery()).get("/?nobody").text
    assert "<nav" not in html
    assert "data-help" in html


# -- help on each page


def test_each_page_has_help_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path / "hub", Clock())
    pages = {
        str(context.path)
        for context in iter_route_contexts(house.app.router.routes)
        if isinstance(context.route, APIRoute) and "GET" in (context.methods or ()) and not context.path.startswith("/api/")
    }
    house.close()
    known = {re.sub(r"\*", "[^/]+", pattern) for pattern in {**house.hub.help, **OWN}}
    without = {page for page in pages - NO_PAGES if not any(re.match(rf"{pattern}(/|$)", page) for pattern in known)}
    assert len(pages) > 80
    assert without == set(), "name a page of the documentation in the service's links or in its help"


def test_the_hubs_own_help_has_a_place_for_each(place: Place) -> None:
    html = place.people["analyst"].client.get("/help").text
    wanted = {page.replace("/", "-") for page in {*place.house.hub.help.values(), *OWN.values(), "how-to/read-a-refusal"}}
    assert {anchor: html.count(f'id="{anchor}"') for anchor in wanted} == dict.fromkeys(wanted, 1)


def test_help_is_that_of_the_longest_address() -> None:
    pages = {"/a": "one", "/a/*/c": "three", "/a/b": "two"}
    assert [help_for(pages, path) for path in ("/a", "/a/b", "/a/b/c/d", "/a/x/c", "/ab", "/")] == [
        *("one", "two", "three", "three", "tutorials/a-first-hub", "tutorials/a-first-hub"),
    ]


def test_the_help_link_leads_to_the_documentation_where_its_address_is_known() -> None:
    def leads(docs: str, path: str) -> str:
        app = make_gallery()
        app.state.hub.settings = replace(app.state.hub.settings, docs=docs)
        found = re.search(r'href="([^"]+)" data-help', TestClient(app).get(path).text)
        assert found is not None
        return found[1]

    assert leads("", "/gallery") == "/help#how-to-ask-a-hub"
    assert leads("https://docs.example.org/", "/gallery") == "https://docs.example.org/how-to/ask-a-hub.html"
    assert leads("", "/error/409") == "/help#how-to-read-a-refusal", "a refusal is explained, not the page that it stands on"
    help_page = TestClient(make_gallery()).get("/help").text
    for anchor in ("how-to-ask-a-hub", "how-to-read-a-refusal", "glossary", "epsilon", "margin"):
        assert help_page.count(f'id="{anchor}"') == 1


# -- one word for a role


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_role_has_one_word(code: str) -> None:
    language = language_of(code)
    for role, word in ROLES.items():
        assert role_title(language, role).lower() == language.gettext(word).lower()
    assert len({language.gettext(word) for word in ROLES.values()}) == len(ROLES)


def test_pages_have_no_other_word_for_a_role() -> None:
    others = re.compile(r"data users?\b|data scientists?\b|custodians?|data stewards?\b|crypto service|\basker", re.IGNORECASE)
    said = {file.name: others.findall(_texts(file.read_text(encoding="utf-8"))) for file in TEMPLATES.rglob("*.html")}
    assert {name: found for name, found in said.items() if found} == {}
    chinese = (TEMPLATES.parent / "translations" / "zh_CN.po").read_text(encoding="utf-8")
    assert re.findall("数据用户|分析人员|分析师|数据拥有者|数据主人|加密服务", chinese) == []


def _texts(template: str) -> str:
    """What a template says to people: the texts given to be translated."""
    return "\n".join(text for _, text in re.findall(r"""_\((["'])(.*?)\1""", template))


# -- words that are explained


def test_a_term_is_linked_once_and_only_where_a_link_may_stand() -> None:
    marked = Marked()
    before = (
        '<h1>The ε of it</h1><a href="/x">ε</a><code>ε</code><p class="sr">ε</p><textarea>ε</textarea><select><option>ε</option>'
        '</select><td title="ε > 1">It costs ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.5.</td><p>Again ε, δ too.</p>'
    )
    html = str(marked.mark(before))
    assert re.findall(r"<a class=\"term\"[^>]*>([^<]*)</a>", html) == ["ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.5", "δ"]
    assert html.count("<abbr ") == 1, "the heading says it first"
    assert html.startswith("<h1>The <abbr")
    assert '<td title="ε > 1">' in html
    assert [term.name for term in marked.linked] == ["epsilon", "delta"]
    bare = re.sub(r"<a class=\"term\"[^>]*>|<abbr[^>]*>|</abbr>|</a>", "", html)
    assert bare == before.replace("</a>", ""), "nothing is lost"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("the table is k-anonymous", ["k"]),
        ("a 5-anonymous table", ["k"]),
        ("the best table for each k", ["k"]),
        ("k alone hides it, where k = 5", ["k"]),
        ("该表满足 k-匿名", ["k"]),
        ("okay, k9 and a word-k-word", []),
        ("<th>k</th>", []),
        ("the margins of error", ["margin"]),
        ("误差范围为 3", ["margin"]),
        ("ρ ≈ 0.01", ["rho"]),
    ],
)
def test_how_a_term_is_said(text: str, names: list[str]) -> None:
    marked = Marked()
    marked.mark(f"<p>{text}</p>")
    assert [term.name for term in marked.linked] == names


@dataclass
class Place:
    """A whole hub that is served, and people who are logged in."""

    house: House
    address: str
    people: dict[str, Visitor]

    def look(self, visit: Visit, who: str, path: str, **how: object) -> Page:  # noqa: F811
        guarded = visit(self.address, **how)
        name = cookie_name(self.house.settings)
        secret = self.people[who].client.cookies.get(name)
        assert secret is not None
        guarded.context.add_cookies([{"name": name, "value": secret, "url": self.address}])
        return guarded.page(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str]) -> Iterator[Place]:  # noqa: F811
    house = House(tmp_path_factory.mktemp("menu") / "hub", Clock())
    people = {role: house.person(role) for role in ("administrator", "steward", "owner", "analyst")}
    data_set = house.sample_data_set(owner=people["owner"])
    actions = ("dataset.see", "question.ask", "release.see", "budget.see", "learn.run", "synthesise.run")
    house.grant(data_set, people["analyst"], by=people["owner"], actions=actions, share={"epsilon": "1"})
    yield Place(house, serve(house.app), people)
    house.close()


@pytest.mark.parametrize("role", ["administrator", "steward", "owner", "analyst"])
def test_every_place_of_the_menu_opens_is_marked_and_has_help_and_its_terms(place: Place, role: str) -> None:
    client = place.people[role].client
    shown = [link for link in ALL_LINKS if is_open(place.people[role].caller, link.action)]
    assert len(shown) >= 15
    said = set[str]()
    for link in shown:
        page = client.get(link.path)
        assert page.status_code == 200, link.path
        frame, middle = page.text.split("</main>")[0].split("<main")
        in_menu = frame.count(f'<a href="{link.path}" aria-current="page">')
        in_account = frame.count(f'<a class="button plain" href="{link.path}" aria-current="page">')
        assert (in_menu, in_account) == ((0, 1) if link.group == "account" else (2, 0)), link.path
        assert "data-help" in page.text
        for term in TERMS:
            linked = f'<a class="term" id="says-{term.name}"' in middle
            assert linked == (f'id="tip-{term.name}"' in page.text), (link.path, term.name)
            said |= {term.name} if linked else set()
        seen = re.sub(r"<(code|pre|option|select|textarea|svg|title)\b.*?</\1>|<[^>]*>", "", middle, flags=re.DOTALL)
        assert ("ε" not in seen) or "#epsilon" in middle or "<abbr" in middle, link.path
    assert "epsilon" in said


def test_terms_are_in_the_readers_language(place: Place) -> None:
    page = place.people["owner"].client.get("/budgets", headers={"Accept-Language": "zh-CN"}).text
    assert "隐私保护越强" in page.split('id="tip-epsilon"')[1].split("</div>")[0]


# -- in a browser


@some_by_day(
    "width, theme, locale",
    [(1400, "light", "en"), (390, "dark", "zh-CN"), (390, "light", "en"), (1400, "dark", "zh-CN")],
    lambda way: way[:2] in ((1400, "light"), (390, "dark")),
)
def test_by_keyboard_alone(place: Place, visit: Visit, width: int, theme: str, locale: str) -> None:  # noqa: F811
    page = place.look(visit, "analyst", "/", width=width, theme=theme, locale=locale)
    nav = page.locator(".side nav")
    if width < 1000:
        page.locator("header.top summary").first.press("Enter")
        nav = page.locator("header.top nav")
    assert nav.locator("> ul > li").count() <= MOST
    group = nav.locator("details", has=page.locator("a[href='/learn']"))
    expect(group.get_by_role("link").first).to_be_hidden()
    group.locator("summary").focus()
    page.keyboard.press("Enter")
    accessible(page)
    expect(group.get_by_role("link").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn")
    current = page.locator(".side nav details[open], header.top nav details[open]")
    assert current.count() == 2, "where one is, the group is unfolded: at the side, and in the menu of a phone"


def test_without_scripts_a_phone_reaches_every_place(place: Place, visit: Visit) -> None:  # noqa: F811
    page = place.look(visit, "owner", "/", width=390, scripts=False)
    page.locator("header.top summary").first.click()
    nav = page.locator("header.top nav")
    for group in nav.locator("details").all():
        group.locator("summary").click()
        for link in group.get_by_role("link").all():
            expect(link).to_be_visible()
    nav.get_by_role("link", name="Policy", exact=True).click()
    page.wait_for_url("**/policy")


@some_by_day("width", [1400, 390], lambda width: width == 390)
def test_a_word_is_explained_on_hover_on_focus_and_by_a_touch(place: Place, visit: Visit, width: int) -> None:  # noqa: F811
    page = place.look(visit, "owner", "/budgets", width=width)
    tip, word = page.get_by_role("tooltip"), page.locator("#says-epsilon")
    expect(tip).to_have_count(0)
    word.hover()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("How much answers may give away about one person")
    box, own = tip.bounding_box(), word.bounding_box()
    assert box is not None
    assert own is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    page.mouse.move(0, 0)
    word.focus()
    expect(tip).to_be_visible()
    accessible(page)
    expect(word).to_have_accessible_description(re.compile("How much answers"))
    word.click()
    page.wait_for_url("**/help#epsilon")
    expect(page.locator("#epsilon")).to_be_in_viewport()
    accessible(page)
