"""Decisions in words: every reason has a sentence, says whom to ask, and shows nothing but the asker's words and declarations."""

from __future__ import annotations

import string

from cloister.errors import AccessDenied
from cloister.hub.decisions.policy import Ask, Decision, decide, denied, whom, words
from cloister.hub.decisions.policy.decision import REASONS
from tests.hub.policy.test_table import rows
from tests.hub.policy.world import CONTEXTS, OBJECTS, PEOPLE, RULES


def test_every_decision_of_the_table_is_a_sentence() -> None:
    for row in rows():
        who, what, which, context, rules, _ = row
        decision = decide(PEOPLE[who], what, OBJECTS[which], CONTEXTS[context], RULES[rules])
        sentence = words(decision)
        assert ("allowed" if decision.allowed else "denied") in sentence, row
        assert "{" not in sentence, row
        if not decision.allowed:
            error = denied(decision)
            assert isinstance(error, AccessDenied), row
            assert decision.rule in error.why, row
            assert error.instead, row
            assert whom(decision.ask), row


def test_sentences_are_translated_with_their_values_untouched() -> None:
    decision = Decision(
        allowed=False, action="learn.run", rule="r", reason="columns", details={"columns": "{0.__class__} %s {x}"}
    )
    german = {REASONS["columns"]: "die Erlaubnis umfasst nicht: {columns}", "Train a model": "Modell lernen"}
    said = words(decision, lambda text: german.get(text, text))
    assert said == "Modell lernen: denied, since die Erlaubnis umfasst nicht: {0.__class__} %s {x}"


def test_sentences_name_only_values_that_their_decisions_give() -> None:
    for text in REASONS.values():
        for _, field, _, conversion in string.Formatter().parse(text):
            assert field is None or (field.isidentifier() and conversion is None)


def test_a_denial_says_the_rule_and_whom_to_ask_and_nothing_of_the_data() -> None:
    """The same words for an object with other rows, columns, grants to others, and money: only who asks and the rule show."""
    error = denied(decide(PEOPLE["eve"], "learn.run", OBJECTS["health"], CONTEXTS["full"]), name="Ada Lovelace")
    assert str(error) == (
        "Train a model: denied: no one granted this to you (rule grants).\n  Instead: ask its owner (Ada Lovelace)"
    )
    for secret in ("patients", "diagnosis", "g-gcp", "2.9", "bob"):
        assert secret not in str(error)


def test_whom_to_ask_is_known_for_every_role_that_decisions_name() -> None:
    decisions = [
        decide(PEOPLE[who], what, OBJECTS[which], CONTEXTS[context], RULES[rules])
        for who, what, which, context, rules, _ in rows()
    ]
    asked = {each.ask.role for each in decisions if each.ask is not None}
    assert asked == {"owner", "steward", "administrator", "project", "self"}
    assert all(whom(Ask(role=role)) for role in asked)
