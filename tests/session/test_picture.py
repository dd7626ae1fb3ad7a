"""The picture of a plan is well-formed, tells what the words tell, and lets no name break out of its box."""

from __future__ import annotations

from xml.etree import ElementTree

import cloister as cl
from cloister.session import Count, Door, Mean, Question


def test_the_picture_shows_what_is_measured_and_what_it_costs() -> None:
    table = cl.PrivateTable(
        {"who": ["a"], "<b>&": [3], "sex": ["F"]},
        columns={"<b>&": cl.Integer(0, 9), "sex": cl.Category(["F", "M"])},
        unit="who",
        max_rows=2,
    )
    with Door({"<script>": table}, budget=cl.PureDP(1)) as door:
        question = Question(table="<script>", by=("sex",), statistics=(Count(), Mean(column="<b>&")))
        plan = door.explain(question, spend="0.5")
        assert str(door.spent) == "ε = 0"
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(plan.picture()).iter()]
    told = " ".join(texts)
    assert "<script>" in told
    assert "at most 2 of one who" in told
    assert "DiscreteLaplace" in told
    assert "cost: ε = 0.5" in told
    assert "<script>" not in plan._repr_html_()
