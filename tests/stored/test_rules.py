"""Where the library asks what a class, its fields or its module are called: each place, and why nothing is stored by it.

What is stored goes by literals (`cloister.stored`). A new place fails here: it belongs on the list only where nothing that
it makes is written down, or where a person's own class is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cloister
from cloister.stored import Stored
from cloister.tables.expression.expressions import And, Or
from cloister.tables.expression.scalar import Scalar

ROOT = Path(cloister.__file__).parent
_CALLED = {"asdict", "astuple", "vars"}
_ATTRIBUTES = {"__dict__", "__qualname__", "__module__", "__dataclass_fields__"}
ALLOWED = {
    ("anonymize/files.py", "vars"): "what one object has found, given to another in memory",
    ("anonymize/frames.py", "__module__"): "of a column or a source, to tell pandas from others",
    ("anonymize/searches/attempts.py", "__dict__"): "what an object keeps in memory",
    ("attacks/broken/__init__.py", "vars"): "the twins of these files, listed in memory; their names are literals",
    ("attacks/canaries.py", "vars"): "an audit looks at what a model holds",
    ("cli/audit.py", "__dataclass_fields__"): "options of a command, by the names that it declares",
    ("errors.py", "vars"): "the literal that a class declares",
    ("hub/database.py", "vars"): "columns of a row that was loaded, looked through in memory",
    ("hub/decisions/policy/strict.py", "fields"): "of grants, rules and policies, whose stored names are held by `policies.json`",
    ("hub/services/anonymizing/authorised.py", "vars"): "what the frame decided, given on in memory",
    ("hub/services/asking/keeping.py", "vars"): "a row for the database, by its columns",
    ("hub/services/asking/authorised.py", "vars"): "what the frame decided, given on in memory",
    ("hub/platform/catalogue/shapes.py", "asdict"): "the answer to a request; the model's fields are the names",
    ("hub/services/learning/api.py", "asdict"): "the answer to a request; the model's fields are the names",
    ("hub/services/guests/running.py", "vars"): "what the frame decided, given on in memory",
    ("hub/services/joint_learning/exact.py", "vars"): "what the frame decided, given on in memory",
    ("hub/services/projecting/jobs.py", "vars"): "what the frame decided, given on in memory",
    ("hub/work/one_table.py", "vars"): "what the frame decided, given on in memory",
    ("hub/work/ordering.py", "fields"): "fields of a form and of a request, by the names that an order declares",
    ("hub/settings.py", "fields"): "by the literals of SETTINGS",
    ("learn/frame/catalogue.py", "vars"): "the literal that a class declares",
    ("mining/reading.py", "__module__"): "of a source, to tell pandas from others",
    ("notebook.py", "vars"): "a chart in a notebook",
    ("privacy/precision.py", "__dict__"): "what a thread keeps in memory",
    ("session/execution/run.py", "__module__"): "a method that is not ours goes by its module and its name",
    ("session/execution/run.py", "__qualname__"): "a method that is not ours goes by its module and its name",
    ("session/execution/run.py", "vars"): "the literal that a class declares",
    ("query/undeclared.py", "fields"): "a relation, looked through in memory",
    ("session/state/view.py", "fields"): "a relation, looked through in memory",
    ("session/releases/wire_checks.py", "fields"): "numbers of a release that was read, looked through in memory",
    ("stored.py", "fields"): "whether every field has a stored name",
    ("synth/comparing.py", "vars"): "a paper for people, which nothing opens again",
    ("synth/report.py", "vars"): "a paper for people, which nothing opens again",
    ("tables/expression/expressions.py", "vars"): "the literal that a class declares",
    ("tables/expression/scalar.py", "fields"): "in their order, without their names",
    ("tables/expression/scalar.py", "vars"): "the literal that a class declares",
    ("vault/proxy.py", "vars"): "results in pymongo's own words, told to a client of the same version and kept nowhere",
    ("vault/fields.py", "vars"): "what one declaration says, given to another in memory",
    ("tables/sourcing/sources.py", "vars"): "what one source of a file holds, given to another in memory",
    ("tables/sourcing/source_factory.py", "__module__"): "of a source, to tell pandas from others",
}


def places(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in (*_CALLED, *_ATTRIBUTES, "fields")):
        return
    tree = ast.parse(text)
    asked = set(_CALLED)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
            asked |= {each.asname or each.name for each in node.names} & {"fields"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in asked:
            yield node.func.id
        elif isinstance(node, ast.Attribute):
            of_dataclasses = isinstance(node.value, ast.Name) and node.value.id == "dataclasses"
            if node.attr in _ATTRIBUTES or (of_dataclasses and node.attr in ("fields", "asdict", "astuple")):
                yield node.attr


def test_nothing_else_asks_what_classes_and_fields_are_called() -> None:
    found = {(path.relative_to(ROOT).as_posix(), name) for path in ROOT.rglob("*.py") for name in places(path)}
    assert found == set(ALLOWED)


def concrete(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from concrete(each)


def test_each_computed_column_has_a_name_of_its_own() -> None:
    """Two with one name would be one question, and what was paid for one would answer the other."""
    import cloister.tables.expression.scalars  # noqa: F401  # all of them

    named = [vars(each)["stored"] for each in concrete(Scalar) if "stored" in vars(each)]
    assert len(set(named)) == len(named) == 38
    assert {each for each in concrete(Scalar) if "stored" not in vars(each)} == {
        each for each in concrete(Scalar) if each.__subclasses__()
    }
    assert (vars(And)["stored"], vars(Or)["stored"]) == ("and", "or")


def test_a_heir_without_a_name_of_its_own_is_not_taken_for_its_parent() -> None:
    from cloister.tables.expression.scalars import Negate, Ref

    class Halved(Negate):
        pass

    with pytest.raises(KeyError):
        Halved(Ref("age")).describe()


def test_every_field_has_a_stored_name() -> None:
    from cloister.privacy import ApproxDP

    with pytest.raises(TypeError, match="stored names of ApproxDP"):
        Stored(ApproxDP, "ApproxDP", "epsilon")
    with pytest.raises(TypeError, match="stored names of ApproxDP"):
        Stored(ApproxDP, "ApproxDP", "epsilon", "delta", "rho")
    renamed = Stored(ApproxDP, "ApproxDP", ("allowance", "epsilon"), ("slack", "delta"))
    assert renamed.told(ApproxDP(1, "0.5")) == {"allowance": 1, "slack": ApproxDP(1, "0.5").delta}
    assert renamed.made({"allowance": 1, "slack": "0.5"}) == ApproxDP(1, "0.5")
    with pytest.raises(KeyError):
        renamed.made({"epsilon": 1, "slack": "0.5"})
