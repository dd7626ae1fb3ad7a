"""Messages that are put together from pieces: each is a Chinese sentence whichever words of the library's stand in it."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest

import cloister
from cloister.hub.decisions.policy import Ask, Decision, denied
from cloister.hub.platform.catalogue.registering import UNITS
from cloister.hub.platform.catalogue.windows import EVERY
from cloister.hub.services.asking.authorised import QUERY
from cloister.hub.services.learning.fitting import MODEL_WORDS
from cloister.hub.web.languages import language_of
from cloister.hub.web.render import TERMS as TOLD
from cloister.hub.web.retelling import TERMS, WORDS
from cloister.tables.declaring import columns
from cloister.tables.declaring.table import _WORDS as HELD
from scripts import translations

SOURCE = Path(cloister.__file__).parent
CHINESE = language_of("zh_CN")
PLACE = re.compile(r"\{(\w+)\}")
LATIN = re.compile(r"[A-Za-z]{2,}")
MESSAGES = {
    message.id: str(message.string)
    for message in translations.read("zh_CN")
    if isinstance(message.id, str) and message.id and not message.context and PLACE.search(message.id)
}
KNOWN = {
    "action": "Run a query",
    "first": "data owner",
    "last": "analyst",
    "title": "Run a query",
    "titles": "data owner or analyst",
    "what": "The name '7'",
    "whom": "the steward",
    "why": "no one granted this to you",
}
"""What stands in the places that hold words of the hub."""
VALUES = frozenset(
    re.findall(
        r"\w+",
        """
        most_counted most_keys most_measures margin by n file most_files environment stated python
        at bins calls deadline enough epoch waiting most_sites overlap plain prepared protocol sender sites stayed step threshold
        pages zone use two document example rules extra author runs
        address alias day each entry fewest longest longest_text memory most_columns most_seconds most_steps most_tried program
        to twice word year heads width dropouts longer needs room statistic
        declared expected field keys reached statistics about after again alone alpha answer approx bare baseline before below
        best beta broken budget c cap ceiling cells certain chance classes column columns condition confidence cost count
        counts deepest deepest_doubling delta dialect dialects digits dimensions distance domain domains ending epsilon
        examples features fifth finest format found gap given guarantee height here high host id inner inside instead interval
        judged k key known l label labels largest largest_exponent least left_key length level limit line lines longest
        longest_line longest_list longest_name longest_pattern longest_value loss lost low majority master max_rows may
        measured method methods missing module moment some most most_categories most_cells most_computed most_conditions
        most_derived most_in_all most_invitations most_joins most_levels most_numbers most_open most_options
        most_pairs most_parts most_questions most_rows most_sets most_sources most_texts most_values most_waiting most_words
        most_written name named names nested node nodes now nullable number numbers object odds of often one op opaque option
        other others out own own_keys parts path pattern pilot place population populations port posterior presence project
        proof published purposes query question questions raw read reference refusal repr rest right_key risk role roles row
        rows rule said sample scale score search second seconds seen seldom self service share shift shown side size slack
        smallest sources space spend squared star steps strange success suppressed suppressed_rows t table tables target text
        text_functions there this through times total training tree twentieth unique units unknown value values was where who
        whole whose widest widths window within words written wrong zcdp
        at hourly kept most_range most_streams no_answer until wait
        most_points drawn projections shares components listed longest_separator most_nodes problem twice
        cell south west north east latitude longitude parts_of_a_person
        cuts rate hidden most_of_all states promised texts shortest most_rules most_terms
        most_read most_regions most_corners corners character narrow wide outside most_journeys metres
        command docs honest key_bytes least_share levels log_level mode offered_roles parties present proxy source
        """,
    )
)
"""Places that hold a number, a name, SQL, or a text that was told before. A place that may hold a word of English belongs into
`retelling.TERMS`, with its words in `words.TERMS`."""

CODE = {
    "{name} of text is not supported",
    "{what} of text is not supported",
    "known are {kinds}",
    "{kind}({low}, {high}) is invalid",
    "{self} was not converted to δ = {wanted}",
    "{title}={text} is invalid",
}
"""Messages whose places hold only code and numbers, though others of that name hold words."""
PARTS = {"This {part}"}
"""Texts that stand only inside others, around code."""


def stem(place: str) -> str:
    return place.rstrip("0123456789")


def terms(context: str) -> list[str]:
    """The words that the catalogue has under a context, with something in their places."""
    return [PLACE.sub("7", str(text)) for text in TOLD if getattr(text, "context", "") == context]


def values(text: str, place: str) -> list[str]:
    """What may stand in a place of a message."""
    if text in CODE:
        return ["7"]
    if stem(place) in WORDS:
        return [KNOWN[stem(place)]]
    return terms(TERMS[stem(place)]) if stem(place) in TERMS else ["7"]


def stray(text: str, shown: str) -> list[str]:
    """Words of English in what is shown that the translation does not keep by itself."""
    kept = set(LATIN.findall(MESSAGES[text]))
    return [word for word in LATIN.findall(re.sub("'[^']*'", "", shown)) if word not in kept]


def constants(file: str, function: str, place: int) -> set[str]:
    """The texts that a module gives to a function."""
    calls = [node for node in ast.walk(ast.parse((SOURCE / file).read_text("utf-8"))) if isinstance(node, ast.Call)]
    given = [call.args[place] for call in calls if ast.unparse(call.func).endswith(function) and len(call.args) > place]
    return {str(each.value) for each in given if isinstance(each, ast.Constant)}


def test_each_place_holds_values_or_words_that_are_told() -> None:
    """A new place is either a value (add it to `VALUES`), or a word (`retelling.TERMS`)."""
    places = {stem(place) for text in MESSAGES for place in PLACE.findall(text)}
    assert not places - VALUES - WORDS - set(TERMS)
    assert not VALUES & (WORDS | set(TERMS))


@pytest.mark.parametrize(
    "text",
    [text for text in MESSAGES if text not in PARTS and any(stem(place) in TERMS for place in PLACE.findall(text))],
)
def test_no_english_word_stands_in_a_chinese_message(text: str) -> None:
    places = list(dict.fromkeys(PLACE.findall(text)))
    for row in product(*(values(text, place) for place in places)):
        filled = PLACE.sub(lambda place, row=row: dict(zip(places, row, strict=True))[place[1]], text)
        shown = CHINESE.gettext(filled)
        assert not stray(text, shown), (filled, shown)
        assert not re.search("[\u3400-\u9fff] [\u3400-\u9fff]|[\u3400-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u3400-\u9fff]", shown)


def test_messages_of_values_alone_are_told_too() -> None:
    """Each message with two fixed words at least, whatever names and numbers stand in it."""
    told = 0
    for text in MESSAGES:
        places = PLACE.findall(text)
        if any(stem(place) in TERMS for place in places) or len(LATIN.findall(PLACE.sub("", text))) < 2:
            continue
        filled = {place: values(text, place)[0] for place in places}
        shown = CHINESE.gettext(PLACE.sub(lambda place, filled=filled: filled[place[1]], text))
        told += 1
        assert not stray(text, shown), shown
    assert told > 300


@pytest.mark.parametrize(
    ("context", "real"),
    [
        ("every", set(EVERY)),
        ("unit", set(UNITS)),
        ("kind", {each.kind for each in vars(columns).values() if isinstance(getattr(each, "kind", None), str)}),
        ("kind", set(HELD.values())),
        (
            "kind",
            constants("session/planning/sharing.py", "._number", 1) | constants("session/planning/builder.py", "._number", 1),
        ),
        ("wanted", constants("ledger/operations.py", "_refused", 2)),
        ("state", {"reserved", "settled", "unknown", "voided"}),
        ("kinds", {"days", "numbers", "persons", "texts", "truth values", "values of 7"}),
        ("part", {"columns", "rows", "share", "risk"}),
        ("party", {"key-holder", "site"}),
    ],
)
def test_each_word_that_the_library_says_has_a_chinese_one(context: str, real: set[str]) -> None:
    assert real
    assert real <= set(terms(context))


def test_what_an_upload_may_have_too_many_of_is_told() -> None:
    what = set().union(*(constants(f"hub/storage/{file}.py", "imits.check", 0) for file in ("texts", "uploads")))
    assert {"rows", "columns", "bytes", "row groups"} <= what
    for each in what:
        shown = CHINESE.gettext(f"it has more than 1,000 {each}, the most here")
        assert re.fullmatch(r"超过上限：最多 1,000 (个?[^A-Za-z ]+)", shown), shown


def test_what_the_floor_of_delta_refuses_is_told() -> None:
    what = constants("hub/platform/budgets/acts.py", "check_max_delta", 1)
    assert what
    for each in [*what, QUERY.name, MODEL_WORDS.name, "The budget of 'people'", "The data set"]:
        assert re.fullmatch("('people' 的)?[\u3400-\u9fff]+未(被接受|受理)", CHINESE.gettext(f"{each} was refused"))


def test_what_people_wrote_stays_as_it_is() -> None:
    assert CHINESE.gettext("unit='person' is unknown") == "未知的 unit='person'"
    assert CHINESE.gettext("kind='text' is invalid") == "kind='text' 无效"
    assert CHINESE.gettext("The account of 'people' could not be read") == "无法读取 'people' 的账目"
    assert (
        CHINESE.gettext("the column 'x' has no kind among integer, real, place") == "列 'x' 的类型不是 integer, real、place 之一"
    )


def test_code_with_one_word_of_english_is_told_inside_another_message() -> None:
    assert CHINESE.gettext("This LIMIT is not supported") == "不支持此 LIMIT"
    assert CHINESE.gettext("This limit of ours") == "This limit of ours"


def test_one_word_is_told_as_its_place_needs() -> None:
    assert CHINESE.gettext("Reservation 12, which is settled, was not voided") == "预留 12 已结算，未能作废"
    assert CHINESE.gettext("Reservation 12, which is voided, was not settled") == "预留 12 已作废，未能结算"


def test_what_one_can_do_oneself_is_a_sentence_and_nobody_is_asked() -> None:
    no = Decision(allowed=False, action="learn.run", rule="role", reason="no-role", details={"roles": "x"}, ask=Ask(role="self"))
    chinese = str(denied(no, CHINESE.gettext))
    assert "您自己即可完成，无需他人批准" in chinese
    assert "请联系" not in chinese
    assert "ask nobody" not in str(denied(no))
    assert "ask no one" not in str(denied(no))
