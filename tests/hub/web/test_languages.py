"""Texts in two languages, complete, with the same places for values; and the tools that keep them so."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

import pytest
from markupsafe import Markup

import cloister as cl
from cloister.hub.web import languages
from cloister.hub.web.formats import number
from cloister.hub.web.languages import LANGUAGES, choose, language_of
from cloister.hub.web.render import make_environment
from cloister.hub.web.retelling import CONTEXT
from cloister.noise import Random
from scripts import translations

PO = """
msgid ""
msgstr ""
"Language: xx\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=2; plural=n > 1;\\n"

msgid "Hello, %(name)s"
msgstr "Salut, %(name)s"

msgid "%(num)s row"
msgid_plural "%(num)s rows"
msgstr[0] "%(num)s ligne"
msgstr[1] "%(num)s lignes"

#, fuzzy
msgid "Ask"
msgstr "Guess"

msgid "Later"
msgstr ""
"""


@pytest.fixture
def french(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> languages.Language:
    (tmp_path / "fr.po").write_text(PO.replace("xx", "fr"), encoding="utf-8")
    monkeypatch.setattr(languages, "TRANSLATIONS", tmp_path)
    monkeypatch.setitem(LANGUAGES, "fr", languages.Language(code="fr", tag="fr", name="français"))
    return language_of.__wrapped__("fr")


def test_a_catalogue_is_read_from_its_file(french: languages.Language) -> None:
    assert french.gettext("Hello, %(name)s", name="Ada") == "Salut, Ada"
    assert [french.ngettext("%(num)s row", "%(num)s rows", number) for number in (0, 1, 2)] == ["0 ligne", "1 ligne", "2 lignes"]
    assert french.gettext("Ask") == "Ask"
    assert french.gettext("Later") == "Later"
    assert french.ngettext("%(num)s day", "%(num)s days", 2) == "2 days"


def test_a_text_without_values_may_hold_a_percent_sign() -> None:
    assert language_of("en").gettext("95 % of answers") == "95 % of answers"
    assert language_of("en").gettext("%(share)s %% of answers", share=95) == "95 % of answers"


def test_a_value_is_escaped_where_another_is_markup() -> None:
    said = language_of("en").gettext("%(who)s & %(link)s", who="<b>", link=Markup("<a>x</a>"))
    assert said == "&lt;b&gt; &amp; <a>x</a>"
    assert isinstance(said, Markup)
    assert not isinstance(language_of("en").gettext("%(who)s", who="<b>"), Markup)


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("zh", "zh_CN"),
        ("zh-Hans-CN,en;q=0.9", "zh_CN"),
        ("en-GB,zh;q=0.9", "en"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=x", "en"),
        ("", "en"),
    ],
)
def test_what_a_browser_accepts(accepted: str, code: str) -> None:
    assert choose("", "", accepted) == code


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run a query: denied", "运行查询：拒绝"),
        ("it is for the role data owner or analyst", "此操作仅限以下角色：数据所有者或数据使用者"),
        ("it is longer than 200 characters", "超过 200 个字符"),
        ("The name is taken", "名称已被占用"),
        ("no one granted this to you (rule grants)", "没有人授予您此权限（规则 grants）"),
        ("ask its owner (Ada Lovelace)", "请联系数据所有者（Ada Lovelace）"),
        ("a token with the scope question.ask", "请使用具有权限范围 question.ask 的令牌"),
        ("δ may be at most 0.1 for all releases of a population together", "对一个人群的所有发布，δ 合计最多为 0.1"),
        (
            "the grant was revoked (rule grant:x), after the request was submitted; it was charged, and the charge stands",
            "提交之后情况有变：授权已被撤销（规则 grant:x）；预算已扣减，不予恢复",
        ),
        ("'{name}' was not opened", "'{name}' 未能开放"),
        # a part would stay English, so all of it does
        ("The shape of the earth is not supported", "The shape of the earth is not supported"),
        ("Something unheard of: denied", "Something unheard of: denied"),
        ("Visits or stays", "Visits or stays"),
    ],
)
def test_a_text_that_was_filled_before_is_known_by_its_shape(text: str, said: str) -> None:
    assert language_of("zh_CN").gettext(text) == said
    assert language_of("en").gettext(text) == text


@pytest.mark.parametrize("code", translations.LANGUAGES)
def test_every_text_in_use_is_translated(code: str) -> None:
    """`python -m scripts.translations` writes what is missing into the catalogue."""
    new = translations.merged(translations.read(code), translations.extracted())
    missing = [(message.id, sorted({place for place, _ in message.locations})) for message in translations.untranslated(new)]
    assert not missing


@pytest.mark.parametrize("code", translations.LANGUAGES)
def test_a_translation_has_the_places_that_its_text_has(code: str) -> None:
    def places(text: str) -> list[str]:
        return sorted(re.findall(r"%\(\w+\)s|\{\w+\}", text))

    wrong = []
    for message in translations.read(code):
        texts = message.id if isinstance(message.id, tuple | list) else (message.id,)
        said = message.string if isinstance(message.string, tuple | list) else (message.string,)
        wrong += [text for text in said if message.id and text and places(text) != places(texts[-1])]
        wrong += [text for text in said if text and "%(" in text and re.search(r"%(?![(%])", text.replace("%%", ""))]
    assert not wrong


def test_texts_are_found_wherever_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "services" / "sample").mkdir(parents=True)
    (tmp_path / "web" / "templates").mkdir(parents=True)
    (tmp_path / "services" / "sample" / "pages.py").write_text(
        "_ = request_gettext(request)\n"
        "a = _('From Python')\n"
        "b = N_('Marked')\n"
        "c = Link(title='A link', path='/link')\n"
        "raise Missing('Nothing like it', why=f'{c}', instead='ask for it')\n"
        "raise Missing(f'{row.name!r} is gone', why='none' if c else f'{len(a):,} rows', instead='SELECT 1')\n"
        "def refused(why, instead): return Missing('No', why=why, instead=instead)\n"
        "raise refused('it is so', '/ask')\n"
        "go(request, '/', request_gettext(request)('It was done.'))\n"
        "raise withheld('Withheld', f'{error.why}, since then; it stands (so)', error)\n"
        "why, instead = 'put aside (for now)', 'SELECT COUNT(*)'\n"
        "def none(why='nobody knows; ask'): return refused('None', why, 'SELECT 2')\n"
        "TABLE = {'limit': ('LIMIT inside', 'rows of different people', 'LIMIT at the end')}\n"
        "guarded('It was not read', work, why='it ends early')\n",
        encoding="utf-8",
    )
    (tmp_path / "web" / "templates" / "page.html").write_text(
        "{{ _('From a template') }}{{ ngettext('One', 'Many', n) }}{% trans %}\n  A long\n  one\n{% endtrans %}", encoding="utf-8"
    )
    found = {message.id for message in translations.extracted(tmp_path) if message.id}
    assert found == {
        *("From Python", "Marked", "A link", "Nothing like it", "ask for it", "From a template", "A long one"),
        *("{name} is gone", "none", "{a} rows", "No", "it is so", "It was done."),
        *("Withheld", "{why}, since then; it stands (so)", "put aside (for now)", "nobody knows; ask", "None"),
        *("rows of different people", "LIMIT at the end", "It was not read", "it ends early"),
        ("One", "Many"),
    }


def test_what_was_translated_stays_and_what_is_not_used_goes() -> None:
    kept = translations.Catalog(locale="zh_CN")
    kept.add("Ask", "提问")
    kept.add("Old", "旧")
    used = translations.Catalog()
    used.add("Ask")
    used.add("New")
    new = translations.merged(kept, used)
    assert {message.id: message.string for message in new if message.id} == {"Ask": "提问", "New": None}
    assert [message.id for message in translations.untranslated(new)] == ["New"]
    assert translations.unused(kept, used) == ["Old"]


def test_contexts_are_found_kept_and_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One English text with a context and without, from templates and Python; plurals too."""
    (tmp_path / "web" / "templates").mkdir(parents=True)
    (tmp_path / "pages.py").write_text("a = _('Who')\nb = NC_('attacker', 'Who')\n", encoding="utf-8")
    (tmp_path / "web" / "templates" / "page.html").write_text(
        "{{ pgettext('cell', 'Who') }}{{ npgettext('cell', '%(num)s row', '%(num)s rows', n) }}", encoding="utf-8"
    )
    used = translations.extracted(tmp_path)
    found = {(message.context, message.id) for message in used if message.id}
    rows = ("%(num)s row", "%(num)s rows")
    assert found == {(None, "Who"), ("attacker", "Who"), ("cell", "Who"), ("cell", rows)}
    kept = translations.Catalog(locale="fr")
    kept.add("Who", "Qui")
    kept.add("Who", "Ce qu'il sait", context="attacker")
    kept.add("Who", "Personne", context="gone")
    kept.add(rows, ("%(num)s ligne", "%(num)s lignes"), context="cell")
    new = translations.merged(kept, used)
    assert [(message.context, message.id) for message in translations.untranslated(new)] == [("cell", "Who")]
    assert translations.unused(kept, used) == ["Who [gone]"]
    (tmp_path / "fr.po").write_bytes(translations.written(new))
    monkeypatch.setattr(languages, "TRANSLATIONS", tmp_path)
    monkeypatch.setitem(LANGUAGES, "fr", languages.Language(code="fr", tag="fr", name="français"))
    french = language_of.__wrapped__("fr")
    assert french.gettext("Who") == french.pgettext("cell", "Who") == "Qui"
    assert french.pgettext("attacker", "Who") == french.gettext(languages.NC_("attacker", "Who")) == "Ce qu'il sait"
    assert [french.npgettext("cell", *rows, number) for number in (1, 2)] == ["1 ligne", "2 lignes"]
    page = make_environment(french, [tmp_path / "web" / "templates"]).get_template("page.html").render(n=2)
    assert page == "Qui2 lignes"


def test_a_text_of_a_paper_stays_as_long_as_the_library_says_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No extractor reads it there: it is composed of pieces, and written without the hub."""
    place, kept = (translations.PAPERS, None), translations.Catalog(locale="zh_CN")
    kept.add("{published} of {rows} published, {suppressed} suppressed", "一", locations=[place])
    kept.add("{rows} zebras published", "二", locations=[place])
    kept.add("{rows} rows published", "三")
    monkeypatch.setattr(translations, "read", lambda _: kept)
    used = [message.id for message in translations.extracted() if place in message.locations]
    assert used == ["{published} of {rows} published, {suppressed} suppressed"]


def test_a_story_names_what_it_fills_in_by_its_whole_text() -> None:
    """By day most stories are walked in English, in which a half of it is found too."""
    known = {each.rpartition(CONTEXT)[2] for each in language_of("zh_CN").messages} | {"age", "sex", "ε"}
    stories = (Path(__file__).parent.parent / "stories").glob("*.py")
    calls = [node for each in stories for node in ast.walk(ast.parse(each.read_text())) if isinstance(node, ast.Call)]
    filled = [
        node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in ("fill", "tick", "choose", "press")
    ]
    labels = [each.value for node in filled for each in node.args[:1] if isinstance(each, ast.Constant)]
    assert len(labels) > 50
    assert [each for each in labels if each not in known] == []


def test_a_catalogue_is_written_as_it_is_read(tmp_path: Path) -> None:
    catalogue = translations.Catalog(locale="zh_CN")
    catalogue.add("Ask", "提问", locations=[("web/base.html", 3)])
    catalogue.add(("%(num)s row", "%(num)s rows"), ("%(num)s 行",))
    text = translations.written(catalogue)
    (tmp_path / "zh_CN.po").write_bytes(text)
    again = translations.read("zh_CN", tmp_path)
    assert again.get("Ask").string == "提问"
    assert again.get("%(num)s row").string == ("%(num)s 行",)
    assert translations.written(again) == text
    assert b":3" not in text


@pytest.mark.parametrize("digits", [None, 0, 1, 2, 8])
def test_a_number_of_any_size_is_written(digits: int | None) -> None:
    """A page of an answer that was paid for is shown, however large a power of a count is."""
    english = language_of("en").locale
    for power in range(35):
        for value in (1.5 * 10.0**power, -(10.0**power), 10**power + 1, Fraction(10**power + 1, 3)):
            written = number(value, english, digits)
            assert float(written.replace(",", "")) == pytest.approx(float(value), rel=1e-3, abs=0.6)
    assert number(10**29 + 1, english) == "100,000,000,000,000,000,000,000,000,001"


ROUND = "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(*) AS n FROM people WHERE sex = 'X'",
        "SELECT COUNT(*) AS n FROM people WHERE age > 200",
        "SELECT COUNT(*) AS n FROM people WHERE age <> 300",
        "SELECT COUNT(*) AS n FROM people WHERE sex <> 'X'",
        f"SELECT AVG(n) AS a FROM {ROUND}",
        f"SELECT AVG(n) AS a FROM {ROUND} WHERE n > (SELECT n FROM {ROUND} WHERE n > 80 AND sex = 'F')",
        "SELECT sex, MAX(age) AS a, MODE(age) AS m FROM people GROUP BY sex",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1",
        f"SELECT 1 / (n - n) AS odd FROM {ROUND}",
    ],
)
def test_each_note_of_an_answer_is_in_the_readers_language(asked: str) -> None:
    """Notes are written below the hub, where no tool looks for texts."""
    rows = {"sex": ["F", "M"] * 50, "age": [30, 40] * 50}
    people = cl.PrivateTable(rows, {"sex": cl.Category(["F", "M"]), "age": cl.Integer(0, 100)})
    session = cl.Session({"people": people}, budget=cl.PureDP(10**6), random=Random.deterministic(1))
    notes = {*session.explain(asked, spend=1).notes, *session.sql(asked, spend=1).notes}
    assert notes
    assert not [note for note in notes if languages.language_of("zh_CN").gettext(note) == note]
