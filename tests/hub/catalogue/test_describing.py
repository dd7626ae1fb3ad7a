"""The form about a data set that is there: a refused one is shown as it was typed."""

from __future__ import annotations

from tests.hub.access.forms import post
from tests.hub.house import House


def test_a_refused_description_keeps_what_was_typed(house: House) -> None:
    owner = house.person("owner")
    house.sample_data_set(owner=owner)
    page = "/datasets/people/manage"
    typed = {"title": "The people", "about": "Each of them", "purposes": "care, research", "combinable_with": "nowhere"}
    refused = post(
        owner, "/datasets/people/describe", page, **typed, labels="clinical", sensitivity="special", retention="2030-01-02"
    )
    assert refused.status_code == 404, "there is no data set of that name"
    for kept in ("The people", "care, research", "nowhere", "clinical", "2030-01-02"):
        assert f'value="{kept}"' in refused.text, kept
    assert "Each of them</textarea>" in refused.text
    assert '<option value="special" selected>' in refused.text
    assert 'value="People"' in owner.client.get(page).text
