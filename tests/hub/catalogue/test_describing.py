"""The form about a data set that is there: a refused one is shown as it was typed."""

from __future__ import annotations

import re

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


def test_a_page_of_before_a_change_does_not_undo_it(house: House) -> None:
    """A title that was saved in another tab took off the purposes that had been written since that was opened."""
    owner = house.person("owner")
    house.sample_data_set(owner=owner)
    page, path = "/datasets/people/manage", "/datasets/people/describe"
    read = r'name="seen" value="([^"]*)"'
    old = re.findall(read, owner.client.get(page).text)
    house.clock.move(minutes=1)
    assert post(owner, path, page, title="People", purposes="care", seen=old).status_code == 303
    house.clock.move(minutes=1)
    refused = post(owner, path, page, title="Everybody", purposes="", seen=old)
    assert (refused.status_code, re.findall(read, refused.text)) == (409, old), "until the page is loaded again"
    shown = owner.client.get(page).text
    assert 'value="care"' in shown
    assert post(owner, path, page, title="Everybody", purposes="care", seen=re.findall(read, shown)).status_code == 303
    assert len(old) == 1
