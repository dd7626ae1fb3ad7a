"""The list of actions: complete, consistent, and open to services without letting them take a name twice."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.policy import Action, Who, actions, decide, may, register_actions, role_table
from cloister.hub.decisions.policy.actions import BUILT_IN, NOBODY, ROLES, known
from cloister.hub.decisions.policy.facts import GrantFacts
from tests.hub.policy.world import CONTEXTS, OBJECTS, PEOPLE


@pytest.fixture
def own_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    module = import_module("cloister.hub.decisions.policy.actions")
    monkeypatch.setattr(module, "_ACTIONS", dict(module._ACTIONS))


def test_nobody_reads_data_by_office_and_only_the_public_pages_are_open() -> None:
    for action in BUILT_IN:
        assert not (action.data and action.overseers)
        assert NOBODY not in action.roles or action.name == "public.read"
        assert not action.data or action.by == "grant"


def test_what_is_implied_is_known_grantable_and_no_stronger() -> None:
    for action in BUILT_IN:
        for name in action.implied_by:
            stronger = actions()[name]
            assert stronger.grantable, name
            assert action.grantable, action.name
            assert not action.data or stronger.data


@pytest.mark.usefixtures("own_list")
def test_a_service_adds_its_own() -> None:
    register_actions([Action(name="survey.open", title="Open a survey", roles=frozenset({"owner"}))])
    assert may(Who(id="p1", roles=frozenset({"owner"})), "survey.open").allowed
    assert not may(Who(id="p1", roles=frozenset({"analyst"})), "survey.open").allowed
    assert known("survey.*")
    assert role_table()[-1].action == "survey.open"


@pytest.mark.usefixtures("own_list")
@pytest.mark.parametrize("names", [("question.ask",), ("survey.open", "survey.open"), ("survey.open", "public.read")])
def test_a_name_is_taken_once_and_a_refused_list_adds_nothing(names: tuple[str, ...]) -> None:
    before = dict(actions())
    with pytest.raises(InvalidParameter, match="its name is taken"):
        register_actions([Action(name=name, title="Again", roles=frozenset({"nobody"})) for name in names])
    assert dict(actions()) == before


def test_nobody_changes_the_list_from_outside() -> None:
    with pytest.raises(TypeError):
        actions()["question.ask"] = BUILT_IN[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"name": "Ask"}, "lower-case words"),
        ({"name": "ask"}, "lower-case words"),
        ({"name": "a.b\n"}, "lower-case words"),
        ({"roles": frozenset()}, "roles must be among"),
        ({"roles": frozenset({"king"})}, "roles must be among"),
        ({"overseers": frozenset({"steward"})}, "overseers"),
        ({"by": "owner", "overseers": frozenset({"steward"})}, "overseers"),
        (
            {"by": "owner", "roles": frozenset({"steward"}), "overseers": frozenset({"steward"}), "data": True},
            "no role gives access",
        ),
    ],
)
def test_an_action_that_contradicts_itself_is_refused(parts: dict[str, object], told: str) -> None:
    whole = {"name": "survey.open", "title": "Open", "roles": frozenset({"owner"}), **parts}
    with pytest.raises(InvalidParameter, match=told):
        Action(**whole)  # type: ignore[arg-type]


def test_the_table_of_roles_says_what_is_decided() -> None:
    """Each cell, against the decision for a person who has that role alone and neither owns nor was granted anything."""
    rows = role_table()
    assert len(rows) == len(actions())
    for row in rows:
        action = actions()[row.action]
        for role, cell in row.cells.items():
            who = Who() if role == NOBODY else Who(id="x", roles=frozenset({role}) & frozenset(ROLES))
            assert may(who, row.action).allowed == (cell != "no"), (row.action, role)
            which = None if action.by == "role" else OBJECTS["orphan"]
            context = CONTEXTS["a1"]
            assert decide(who, row.action, which, context).allowed == (cell in ("yes", "all")), (row.action, role)
            assert (cell == "all") <= (role in action.overseers)


def test_a_role_with_nothing_behind_it_is_named_in_no_table_or_page_of_the_documentation() -> None:
    assert "csp" not in {name for row in role_table() for name in row.cells}
    for page in (Path(__file__).parents[3] / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "cloister csp" in text or not re.search(r"\bcsp\b", text, re.IGNORECASE), f"{page}: the command alone is there"


def test_a_wrong_action_is_refused_with_those_that_are_known() -> None:
    for wrong in ("fly", "roles.give"):
        with pytest.raises(InvalidDeclaration) as refused:
            GrantFacts.read({"role": "r", "members": {"anybody": True}, "rules": {"actions": [wrong]}}, id="g1")
        assert all(name in str(refused.value) for name in ("question.ask", "synthesise.run"))


@pytest.mark.parametrize("name", ["", "question.ask ", "Question.Ask", "question.*", "*", "\x00", "🜁", "a" * 10_000])
def test_a_strange_action_is_denied(name: str) -> None:
    for who in PEOPLE.values():
        decision = decide(who, name, OBJECTS["health"], CONTEXTS["research"])
        assert (decision.allowed, decision.reason) == (False, "unknown-action")
