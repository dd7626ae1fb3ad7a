"""Collecting: estimates find the truth, levels add up, garbage and repeated reports count for nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.local.survey import (
    Number,
    Results,
    Scale,
    Several,
    Survey,
    Tally,
    Word,
    YesNo,
    collect,
    issue_tokens,
    read_report,
    respond,
)
from cloister.local.survey.channel import Channel
from cloister.local.survey.channels import channel_of
from cloister.local.survey.counts import Counts
from cloister.noise import Random
from scripts.local_vectors import everything

SIGMAS = 6.0
"""Beyond so many standard deviations an estimate lies once in 5·10⁸ times."""


def small(**given: Any) -> Survey:
    return Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], **({"levels": {"careful": 1, "open": 3}} | given))


def counted(channel: Channel, places: list[Any], seed: int) -> Counts:
    random = Random.deterministic(seed)
    return channel.count([channel.read(channel.report(place, random)) for place in places])


def test_answers_of_every_kind_are_found_again() -> None:
    survey, random = everything(), Random.deterministic(8)
    answers = {
        "yes-no": "yes",
        "choice": "green",
        "long": "option 3",
        "several": ["b", "c"],
        "scale": "often",
        "number": 30,
        "place": (47.9, 8.1),
    }
    results = collect(survey, [respond(survey, answers, "open", random=random).to_json() for _ in range(300)])
    assert results.tally.n == 300
    assert results.alarms == []
    expected = {"yes-no": ["yes"], "choice": ["green"], "long": ["option 3"], "several": ["b", "c"], "scale": ["often"]}
    for name, given_ in (expected | {"place": ["2,0"], "spread": ["no answer"], "number": ["a number"]}).items():
        estimate = results[name].combined.estimate
        for label, count, variance in zip(estimate.values, estimate.counts, estimate.variances, strict=True):
            true = 300 * (label in given_)
            assert abs(count - true) < SIGMAS * variance**0.5 + 1e-9, (name, label)
    mean = results["number"].combined.mean()
    assert mean is not None
    assert abs(mean.value - 30) < SIGMAS * mean.variance**0.5
    json.dumps(results.to_dict())
    assert "mean" in results.text()


def test_the_mean_of_a_scale_and_its_margin() -> None:
    """Over 200 surveys of 400 people: unbiased, and the margin of one standard deviation is neither short nor twice too wide.
    The mean squared pull of 200 means lies within 1 ± 0.6 but for a chance below 1e-6 (chi-square with 200 degrees), and the
    margin is allowed to be half as wide again as it need be."""
    question = Scale("often", "How often?", ["never", "once", "often", "always"])
    channel = channel_of(question, 1)  # type: ignore[arg-type]
    places = [0] * 150 + [1] * 100 + [3] * 100 + [4] * 50
    true = (150 * 1 + 100 * 2 + 100 * 4) / 350
    pulls, random = [], Random.deterministic(2)
    for _ in range(200):
        mean = channel.finding(channel.count([[each] for each in channel.oracle.randomize(places * 4, random=random)])).mean()  # type: ignore[attr-defined]
        assert mean is not None
        pulls.append((mean.value - true) / mean.variance**0.5)
    assert abs(float(np.mean(pulls))) < 5 / 200**0.5 + 0.1
    assert 0.3 < float(np.mean(np.square(pulls))) < 1.6


@pytest.mark.parametrize("want", ["mean", "spread"])
def test_numbers_with_and_without_an_answer(want: str) -> None:
    """A fifth gives no number; the mean is of those who do."""
    channel = channel_of(Number("hours", "How many?", low=0, high=40, want=want), 2)  # type: ignore[arg-type]
    places = [None] * 400 + [10.0] * 1000 + [25.0] * 600
    finding = channel.finding(counted(channel, places, 3))
    answered, mean = finding.answered, finding.mean()
    assert abs(answered.value - 1600) < SIGMAS * answered.variance**0.5
    assert mean is not None
    assert abs(mean.value - (10 * 1000 + 25 * 600) / 1600) < SIGMAS * mean.variance**0.5
    assert mean.margin(0.95) < 5
    if want == "spread":
        low = sum(finding.estimate.counts[:5])  # 0 to 20
        assert abs(low - 1000) < 350


def test_points_that_chance_drew_have_a_variety_of_their_own() -> None:
    """Who gives no number reports a uniform point: it was read as if it were somebody's, and a mean held 3 times in 4."""
    channel = channel_of(Number("hours", "How many?", low=0, high=40, want="spread"), 10)  # type: ignore[arg-type]
    found = [channel.finding(counted(channel, [None] * 300, seed)) for seed in range(40)]
    totals = [each.total for each in found if each.total is not None]
    assert 0.3 < float(np.mean([each.value**2 / each.variance for each in totals])) < 1.6
    assert min(each.variance for each in totals) > 0.9 * 300 * 40**2 / 12
    assert all(each.estimate.variances[4] > 0.8 * 300 * 0.1 * 0.9 for each in found)


def test_levels_add_up_whoever_chose_which() -> None:
    """Those who copied choose the careful level four times as often: the groups' shares differ, and the sum is right."""
    survey = small(levels={"careful": "0.5", "open": 2})
    question, random = survey.questions[0], Random.deterministic(4)
    tally = Tally(survey)
    for level, yes, no in (("careful", 24_000, 14_000), ("open", 6_000, 56_000)):
        channel = survey.channel(question, survey.level(level))
        made = channel.oracle.randomize([1] * yes + [0] * no, random=random)  # type: ignore[attr-defined]
        tally._counts["copied", level] = channel.count([[int(each)] for each in made])
    result = Results(survey, tally)["copied"]
    estimate = result.combined.estimate
    assert abs(estimate.counts[1] - 30_000) < SIGMAS * estimate.variances[1] ** 0.5
    assert estimate.n == 100_000
    assert result.alike is not None
    assert result.alike.p_value < 1e-6
    careful = result.by_level["careful"].estimate
    assert abs(careful.counts[1] - 24_000) < SIGMAS * careful.variances[1] ** 0.5


def test_a_word_that_few_levels_find_is_counted_in_all() -> None:
    survey = Survey("town", "Towns", [Word("town", "Which?", length=4)], levels={"careful": "0.5", "open": 4}, cap=4)
    question, tally, random = survey.questions[0], Tally(survey), Random.deterministic(5)
    for level, people in zip(survey.levels, (600, 3000), strict=True):
        channel = survey.channel(question, level)
        made = channel.heavy.randomize(["bern"] * people + ["chur"] * 100, random=random)  # type: ignore[attr-defined]
        tally._counts["town", level.name] = channel.count(made.tolist())
    result = Results(survey, tally)["town"]
    assert list(result.by_level["careful"].estimate.values) == []
    assert set(result.by_level["open"].estimate.values) >= {"bern"}
    estimate = result.combined.estimate
    place = list(estimate.values).index("bern")
    assert abs(estimate.counts[place] - 3600) < SIGMAS * estimate.variances[place] ** 0.5
    assert estimate.n == 3800


def test_who_writes_no_answer_is_not_who_gives_none() -> None:
    """The words stand for themselves: of all levels together, what reads like the label of no answer is looked up as it is."""
    survey = Survey("town", "Towns", [Word("town", "Which?", length=9)], levels={"more": 5, "open": 6}, cap=6)
    question, tally, random = survey.questions[0], Tally(survey), Random.deterministic(4)
    for level in survey.levels:
        channel = survey.channel(question, level)
        made = channel.heavy.randomize(["no answer"] * 600 + [""] * 300, random=random)  # type: ignore[attr-defined]
        tally._counts["town", level.name] = channel.count(made.tolist())
    combined = Results(survey, tally)["town"].combined
    told = {each["answer"]: each["count"] for each in combined.rows()}
    deviation = max(combined.estimate.variances) ** 0.5
    assert abs(told['"no answer"'] - 1200) < SIGMAS * deviation < 600
    assert abs(told["no answer"] - 600) < SIGMAS * deviation
    assert abs(combined.answered.value - 1200) < SIGMAS * deviation


def test_a_word_that_no_honest_machine_sends_is_not_told() -> None:
    """Control characters end programs that draw pictures and read files: who writes a report of one by hand is not heard."""
    survey = Survey("town", "Towns", [Word("town", "Which?", length=2)], levels={"open": 6}, cap=6)
    question, tally, random = survey.questions[0], Tally(survey), Random.deterministic(3)
    channel = survey.channel(question, survey.level("open"))
    made = channel.heavy.randomize(["\x02a"] * 200 + ["ch"] * 200, random=random)  # type: ignore[attr-defined]
    tally._counts["town", "open"] = channel.count(made.tolist())
    values = Results(survey, tally)["town"].combined.estimate.values
    assert "ch" in values
    assert not any("\x02" in each for each in values)


def test_tallies_add_up_and_come_back() -> None:
    survey, random = everything(), Random.deterministic(6)
    reports = [respond(survey, {"choice": "red", "word": "bern"}, "open", random=random) for _ in range(60)]
    whole, morning, evening = Tally(survey), Tally(survey), Tally(survey)
    whole.add(reports)
    morning.add(report.to_json() for report in reports[:20])
    evening.add(report.to_dict() for report in reports[20:])
    evening.add(["garbage"])
    total = Tally.from_json(survey, (morning + evening).to_json())
    assert total.people("word") == whole.people("word") == {"careful": 0, "open": 60}
    assert total.refused == {"not JSON": 1}
    for question in survey.questions:
        one, other = whole.counts(question.name, "open"), total.counts(question.name, "open")
        assert one.to_dict() == other.to_dict(), question.name
    with pytest.raises(InvalidParameter, match="same token"):
        _ = morning + whole
    with pytest.raises(InvalidParameter, match="different surveys"):
        _ = morning + Tally(small())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said: "{",
        lambda said: json.dumps(said | {"version": "1-0"}),
        lambda said: json.dumps(said | {"counts": [{"question": "x", "level": "careful", "n": 1, "parts": {}}]}),
        lambda said: json.dumps(said | {"counts": 3}),
        lambda said: json.dumps({"survey": said["survey"]}),
        lambda said: said_with_less(said),
    ],
)
def test_a_spoilt_tally_is_refused(spoil: Any) -> None:
    survey = small()
    tally = Tally(survey)
    tally.add([respond(survey, {}, "careful")])
    with pytest.raises(InvalidParameter, match="tally is invalid"):
        Tally.from_json(survey, spoil(json.loads(tally.to_json())))


def said_with_less(said: dict[str, Any]) -> str:
    said["counts"][0]["parts"]["sketch"] = {"shape": [3], "counts": [-1, 0, 0]}
    return json.dumps(said)


def test_each_invitation_counts_once() -> None:
    survey = small()
    tokens, hashes = issue_tokens(3)
    reports = [respond(survey, {"copied": True}, "open", token=token) for token in [*tokens, tokens[0]]]
    strangers = [respond(survey, {"copied": True}, "open") for _ in range(5)]
    tally = Tally(survey, invited=hashes)
    received = tally.add([*reports, *strangers])
    assert received.to_dict() == {"accepted": 3, "refused": {"token used before": 1, "token not issued": 5}}
    assert tally.add([reports[1]]).accepted == 0
    assert all(token not in tally.to_json() for token in tokens)


def test_a_tally_stays_with_its_list_of_the_invited_or_without_one() -> None:
    """Under the other rule a report would count once more, and one of somebody who was not invited stay in."""
    survey = small()
    tokens, hashes = issue_tokens(2)
    by_list, by_anybody = Tally(survey, invited=hashes), Tally(survey)
    for tally in (by_list, by_anybody):
        tally.add([respond(survey, {"copied": True}, "open", token=tokens[0])])
    for tally, other in ((by_list, None), (by_anybody, hashes)):
        with pytest.raises(InvalidParameter, match="a list of the invited"):
            Tally.from_json(survey, tally.to_json(), invited=other)
        older = json.dumps({name: part for name, part in json.loads(tally.to_json()).items() if name != "invited"})
        assert Tally.from_json(survey, older, invited=tally.invited).n == 1
    with pytest.raises(InvalidParameter, match="a list of the invited"):
        Tally.from_json(survey, older, invited=hashes)
    with pytest.raises(InvalidParameter, match="a list of the invited"):
        _ = by_list + by_anybody


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"survey": "other"}, "of another survey"),
        ({"version": "1-000000000000"}, "of another version"),
        ({"levels": {"copied": "reckless"}}, "of an unknown level"),
        ({"levels": {"copied": ["careful"]}}, "of an unknown level"),
        ({"levels": {"copied": "careful", "more": "careful"}}, "of an unknown level"),
        ({"levels": {}}, "of an unknown level"),
        ({"levels": "careful"}, "of an unknown level"),
        ({"format": 1}, "of another format"),
        ({"format": "2"}, "of another format"),
        ({"token": "x"}, "without a token"),
        ({"token": None}, "without a token"),
        ({"values": {}}, "other questions"),
        ({"values": {"copied": 1, "more": 1}}, "other questions"),
        ({"values": [1]}, "not a report"),
        ({"extra": 1}, "not a report"),
        ({"values": {"copied": 3}}, "impossible values"),
        ({"values": {"copied": -1}}, "impossible values"),
        ({"values": {"copied": True}}, "impossible values"),
        ({"values": {"copied": 1.0}}, "impossible values"),
        ({"values": {"copied": "1"}}, "impossible values"),
        ({"values": {"copied": None}}, "impossible values"),
        ({"values": {"copied": 10**400}}, "impossible values"),
    ],
)
def test_garbage_is_counted_with_its_reason_and_never_believed(change: dict[str, Any], reason: str) -> None:
    survey = small()
    report = respond(survey, {"copied": True}, "careful").to_dict() | change
    tally = Tally(survey)
    assert tally.add([report]).to_dict() == {"accepted": 0, "refused": {reason: 1}}
    assert tally.n == 0


@pytest.mark.parametrize(
    "name", ["choice", "long", "several", "number", "spread", "place", "word"]
)  # one protocol each, at the least
@given(said=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.from_regex(r"0x[0-9a-f]{1,20}", fullmatch=True),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
))  # fmt: skip
def test_no_value_stops_a_collector(name: str, said: Any) -> None:
    survey = everything()
    report = respond(survey, {"choice": "red"}, "open", random=Random.deterministic(1)).to_dict()
    report["values"][name] = said
    received = Tally(survey).add([report, json.dumps(report)])
    if received.accepted:  # it happens to be a report
        rest = read_report(survey, report)
        assert not isinstance(rest, str)
    assert received.accepted + sum(received.refused.values()) == 2


@given(said=st.text() | st.binary() | st.none() | st.integers() | st.lists(st.integers(), max_size=3))
def test_no_report_stops_a_collector(said: Any) -> None:
    received = Tally(small()).add([said])
    assert received.accepted == 0
    assert sum(received.refused.values()) == 1


def test_a_text_without_end_is_too_long() -> None:
    assert Tally(small()).add(["1" * (1 << 21)]).refused == {"too long": 1}


def test_one_bad_value_takes_the_whole_report_out() -> None:
    survey = Survey("two", "Two", [YesNo("a", "A?"), Several("b", "B?", ["x", "y"])], levels={"open": 2}, cap=8)
    report = respond(survey, {}, "open").to_dict()
    report["values"]["b"] = ["0xff"]
    tally = Tally(survey)
    tally.add([report])
    assert tally.counts("a", "open").n == 0


def test_results_of_nobody() -> None:
    results = collect(everything(), [])
    told = results.to_dict()
    assert told["n"] == 0
    assert all(each["one_percent_liars"] is None for each in told["questions"])
    assert results.text()


@pytest.mark.parametrize(("low", "high"), [("1000000", "1000010"), ("0", "40"), ("-0.1", "0.3"), ("1e15", "1000000000000010")])
def test_each_bin_has_a_name_of_its_own(low: str, high: str) -> None:
    survey = Survey("s", "S", [Number("x", "X?", low=low, high=high, want="spread")], levels={"a": 1})
    names = [each["answer"] for each in Results(survey, Tally(survey))["x"].to_dict()["combined"]["answers"]]
    assert len(set(names)) == len(names) == 11


def test_where_nobody_answered_no_share_is_certain() -> None:
    """Of every kind of question alike: also of a number, of which two parts are reported."""
    numbers = [Number("mean", "Mean?", low=0, high=9), Number("spread", "Spread?", low=0, high=9, want="spread")]
    survey = Survey("none", "None", [YesNo("a", "A?"), *numbers], levels={"open": 2})
    for each in Results(survey, Tally(survey)).questions:
        assert all(row["share_margin"] > 1 for row in each.combined.rows()), each.question.name
