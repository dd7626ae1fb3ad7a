"""What the administrator of a new hub is told to do first."""

from __future__ import annotations

import html

from tests.hub.accounts.world import World


def test_the_first_administrator_is_told_what_to_do_and_not_to_ask_an_administrator(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    home = html.unescape(root.get("/").text)
    for words in ("Copy the file master.key", 'href="/account/second-factor"', 'href="/policy"', "Invite people"):
        assert words in home, words
    assert "An administrator of this hub gives roles" not in home
    ada = world.logged_in("ada@example.org", "analyst")
    for browser in (root, ada):
        assert "Copy the file master.key" not in browser.get("/").text, "the hub has people"
