"""The files of the pages: small, ours alone, and without loose ends."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cloister.hub.web.render import STATIC, TEMPLATES

HUB = TEMPLATES.parents[1]
CSS = (STATIC / "cloister.css").read_text(encoding="utf-8")
SCRIPT = (STATIC / "page.js").read_text(encoding="utf-8")
PAGES = {path.relative_to(TEMPLATES).as_posix(): path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.html")}


def icons() -> set[str]:
    return {symbol.attrib["id"] for symbol in ElementTree.parse(STATIC / "icons.svg").getroot()}


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_no_file_asks_another_host_for_anything(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\([\"']?//|@import|<script|\son\w+=", text)


def test_the_script_stays_small_and_evaluates_nothing() -> None:
    assert len(SCRIPT.splitlines()) <= 200
    assert not re.search(r"\beval\(|new Function|innerHTML|document\.write|insertAdjacentHTML", SCRIPT)


def test_every_token_that_is_used_is_defined() -> None:
    defined = set(re.findall(r"(--[\w-]+)\s*:", CSS))
    assert set(re.findall(r"var\((--[\w-]+)", CSS)) <= defined


def test_every_colour_has_a_dark_twin() -> None:
    root = CSS[CSS.index(":root {") : CSS.index(':root[data-theme="light"]')]
    single = [line.strip() for line in root.splitlines() if re.search(r"#[0-9a-f]{3,6}", line) and "light-dark(" not in line]
    assert not single


def test_every_icon_that_a_page_or_a_link_names_is_drawn() -> None:
    named = {name for text in PAGES.values() for name in re.findall(r"\bicon\(\"([\w-]+)\"", text)}
    named |= {name for text in PAGES.values() for name in re.findall(r"icon_name=\"([\w-]+)\"", text)}
    for path in (*HUB.rglob("services/**/*.py"), *HUB.rglob("platform/**/*.py")):
        named |= set(re.findall(r"\bicon=\"([\w-]+)\"", path.read_text(encoding="utf-8")))
    assert {"home", "menu", "person"} <= named
    assert named <= icons(), f"not drawn: {sorted(named - icons())}; drawn are {sorted(icons())}"


def test_every_class_that_a_page_names_is_styled_or_bare() -> None:
    """A class without a rule is a slip of the pen. `bare` are hooks that need none."""
    bare = {"card-title", "card", "left", "first"}
    styled = set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"/\*.*?\*/", "", CSS, flags=re.S))) | bare
    unknown = {
        (name, word)
        for name, text in PAGES.items()
        for value in re.findall(r'\bclass="([^"{]*)"', text)
        for word in value.split()
        if word not in styled
    }
    assert not unknown


def test_enter_in_a_field_of_an_order_says_what_it_costs() -> None:
    """A browser presses the first button of a form then: where a form has a button that only tells, it is that one."""
    tells = re.compile(r"/price|/expected|/explain|/hierarchies")
    found = set()
    for name, text in PAGES.items():
        for form in re.split(r"<form\b|form_open\(", text)[1:]:
            buttons = re.findall(r"\bbutton\(.*?\) \}\}|<button\b[^>]*>", re.split(r"</form>|form_close\(", form)[0])
            if any(map(tells.search, buttons)):
                found.add(name)
                assert tells.search(buttons[0]), f"{name}: Enter presses {buttons[0]}"
    assert {"asking/ask.html", "asking/build.html", "learning/learn.html", "synthesising/order.html"} <= found


def test_no_template_writes_style_or_handlers() -> None:
    for name, text in PAGES.items():
        assert not re.search(r"\sstyle=|\son[a-z]+=[\"']|<style|\|\s*safe\b", text), name
