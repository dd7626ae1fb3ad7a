"""The whole hub in Chinese: no page says in English what the catalogue can say, each names its language, and the catalogue keeps
the words and the signs that were agreed on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from cloister.hub.web.languages import NC_, language_of
from cloister.hub.web.render import LANGUAGE_COOKIE
from scripts import translations
from tests.hub.house import House, Visitor
from tests.hub.security.walk import NUMBERED, Place, addresses, kinds, places
from tests.hub.security.world import World, populated
from tests.hub.test_routes import guarded

SHOWN = {"aria-label", "alt", "data-confirm", "data-copied", "data-label", "placeholder", "title"}
UNTOLD = {"code", "option", "pre", "script", "style", "textarea"}
"""Elements that hold what people and programs wrote."""
HERE = re.compile(r' aria-current="page"| class="current"| open(?=>)')
"""What the menu says of the page that it stands on."""
HIDDEN = re.compile(r'<input type="hidden"[^>]*>')
ALONE = {"br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect", "source", "use"}


class Visible(HTMLParser):
    """The texts that a page shows or reads out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [text for name, text in attrs if text and name in SHOWN]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not UNTOLD & set(self.open):
            self.texts.append(" ".join(data.split()))


@pytest.fixture(scope="module")
def world(one_house: House) -> World:
    """One for this file, since its tests only read."""
    return populated(one_house)


@pytest.fixture(scope="module")
def refused() -> set[str]:
    """What says the same to everybody, and somebody read: the action that a role may not do, the address of nothing there."""
    return set()


def strange(place: Place, address: str, ids: dict[str, str]) -> bool:
    """Whether nothing is there for anybody: a number of nothing, or one of what the first part of the address never shows."""
    numbered = place.path.split("/")[1] in NUMBERED and "number" in place.parameters
    return not {"nothing", *([ids[kinds(place, "number")[-1]]] if numbered else [])}.isdisjoint(address.split("/"))


def pages(world: World, visitor: str, refused: set[str]) -> Iterator[tuple[str, str]]:
    who: Visitor = getattr(world, visitor)
    who.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    for place in places(world.house.app):
        if not place.api and not place.writes and "form" not in place.parameters:
            closed = place.action if guarded(who.caller, place.action) == "denied" else ""
            for address in addresses(place, world.ids):
                same = closed or (address if strange(place, address, world.ids) else "")
                if same in refused:
                    continue
                refused |= {same} - {""}
                answer = who.client.get(address)
                if answer.headers.get("content-type", "").startswith("text/html"):
                    yield address, answer.text


@pytest.mark.parametrize("visitor", ["owner", "analyst", "administrator", "steward"])
def test_no_page_says_in_english_what_it_can_say_in_chinese(world: World, visitor: str, refused: set[str]) -> None:
    chinese = language_of("zh_CN")
    where, seen, read = dict[str, str](), 0, set[str]()
    for address, page in pages(world, visitor, refused):
        seen += 1
        assert '<html lang="zh-Hans"' in page or "<html" not in page, address  # a part that a page fetches has no language
        for part in re.split("(?=<main|<nav)|(?<=</main>)|(?<=</nav>)", HERE.sub("", HIDDEN.sub("", page))):
            if part not in read:  # most pages have the same frame, or say the same of what is not there
                read.add(part)
                for text in Visible(part).texts:
                    where.setdefault(text, address)
    left = {(text, address) for text, address in where.items() if chinese.gettext(text) != text}
    assert seen > 20
    assert not left


def test_times_and_numbers_are_written_as_in_chinese(world: World) -> None:
    world.owner.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    page = world.owner.client.get("/datasets/secrets_zqx/manage").text
    assert re.search(r'<time datetime="2026-03-02T09:00:00Z"[^>]*>2026年3月2日 09:00 UTC</time>', page)


CATALOGUE = [
    (message.context or "", text, said)
    for message in translations.read("zh_CN")
    if message.id
    for text, said in zip(
        [message.id] if isinstance(message.id, str) else [message.id[-1]],
        [message.string] if isinstance(message.string, str) else list(message.string),
        strict=True,
    )
]
"""Every text: its context, the English, the Chinese."""
CHINESE = "\u3400-\u9fff"
PLACE = re.compile(r"%\(\w+\)s|\{\w+\}")
AVOIDED = (
    *("扣留", "订单", "下单", "扣费", "计费", "收费", "购买", "价格", "支付", "支取", "支出"),
    *("本中心", "保留期限", "同意依据", "提供者", "误差棒", "误差条", "作业", "群组", "档位", "真假值", "平均值", "私有"),
    *(
        "封印",
        "捕获",
        "胜算",
        "保护单位",
        "主体",
        "审计记录",
        "提醒",
        "数据用户",
        "分析人员",
        "配额",
        "无界",
        "分享",
        "匿名化的表",
    ),
)
"""Words that another one stands for: `未予发布` for 扣留, `扣减` for 扣费, `平台` for 本中心, `隐私单位` for 保护单位."""
REFUSED = {
    "A charge of {cost} to population {name} was refused",
    "Choose a smaller one; otherwise queries that need δ are refused.",
    "Further names that a request's Host may have, separated by commas; other names are denied.",
    "Learning for {whole} was refused",
    "Revoke this grant? The next query that needs it is denied.",
    "The grant was revoked. The next query that needs it is denied.",
    "The request was denied",
    "The request was refused",
    "The request was refused.",
    "This was refused",
    "{told} to population {name} was refused",
}
"""Decisions of budgets, grants and rules; what cannot be read is 无效, and what has no proof 不支持."""
QUOTED = ("DATE '2026-01-31'", '{"role"', '{"title"', "marital = 'never married'", 'cl.Moment("2026-01-01", "2026-12-31")')
"""Code with quotes of its own."""


def plain(said: str) -> str:
    """A text with a sign in place of each value."""
    return PLACE.sub("■", said)


def test_money_is_not_spoken_of_and_a_thing_has_one_name() -> None:
    assert not [(word, said) for _, _, said in CATALOGUE for word in AVOIDED if word in said]


def test_only_decisions_are_refusals() -> None:
    found = {text for _, text, said in CATALOGUE if "被拒绝" in said}
    assert {each for each in found if "will be refused" not in each} <= REFUSED


def test_a_reason_does_not_begin_with_a_pronoun() -> None:
    assert not [said for _, _, said in CATALOGUE if re.match(r"它|其(?![他中余它])", said)]


def test_a_sentence_does_not_ask_who_and_then_answer() -> None:
    assert not [said for _, _, said in CATALOGUE if re.search(r"谁[^，。：；？]*[，][^。？]*就", said)]


def test_quotation_marks_are_chinese() -> None:
    code = re.compile(f"(?<=[=(])([\"'])[^\"'{CHINESE}]*\\1")
    wrong = [said for _, _, said in CATALOGUE if re.search(f"[{CHINESE}]", said) and re.search("['\"]", code.sub("", said))]
    assert not [said for said in wrong if not any(code in said for code in QUOTED)]


def test_no_blank_stands_before_a_percent_sign() -> None:
    assert not [said for _, _, said in CATALOGUE if re.search(r"\S %%?(?![(\d])", said)]


def test_a_blank_stands_between_chinese_and_latin_and_none_within_chinese() -> None:
    mixed = re.compile(f"[{CHINESE}][A-Za-z0-9]|[A-Za-z0-9][{CHINESE}]|[{CHINESE}] [{CHINESE}]|[{CHINESE}][,;:?!]")
    assert not [said for _, _, said in CATALOGUE if mixed.search(plain(said)) or said != said.strip()]


def test_the_places_for_values_are_those_of_the_english() -> None:
    assert not [text for _, text, said in CATALOGUE if sorted(PLACE.findall(text)) != sorted(PLACE.findall(said))]


def test_one_english_word_with_two_meanings_has_a_context() -> None:
    chinese = language_of("zh_CN")
    two = {
        ("attacker", "Who"): ("攻击者掌握的信息", "人员"),
        ("certificate", "Asked"): ("要求", "已申请"),
        ("when", "Asked"): ("申请时间", "已申请"),
        ("actions", "To"): ("适用操作", "至"),
        ("survey", "Answer"): ("选项", "答案"),
        ("survey", "Send it"): ("提交答卷", "Send it"),
        ("data", "Policy"): ("策略", "政策"),
    }
    for (context, text), told in two.items():
        assert (chinese.pgettext(context, text), chinese.gettext(text)) == told
        assert chinese.gettext(NC_(context, text)) == told[0]
        assert language_of("en").pgettext(context, text) == language_of("en").gettext(NC_(context, text)) == text
    # one Chinese word does for all places of these
    assert (chinese.gettext("The levels are invalid"), chinese.gettext("Enter names.")) == ("级别无效", "填写名称。")


def test_what_the_law_calls_anonymised_is_told_where_tables_are_first_named() -> None:
    first = [
        said for _, text, said in CATALOGUE if text.startswith(("Make a table that anyone may read", "This table is NOT diff"))
    ]
    assert len(first) == 2
    assert all("《个人信息保护法》第七十三条" in said and "不能复原" in said for said in first)
