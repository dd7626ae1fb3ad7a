"""The menu: what people do at a hub, in six groups. And for each page, the page of the documentation that helps with it.

A service's link names its group (`service.Link`). What a caller's roles may not do at all is not offered; a group in which one
link is left is that link. So no menu has more than seven entries: the first page, and a group each.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cloister.hub.service import GroupName, Guide, Link
from cloister.hub.web.languages import N_

ACCOUNT: GroupName = "account"
FIRST_PAGE = "tutorials/a-first-hub"
REFUSED = "how-to/read-a-refusal"
GLOSSARY = "glossary"
OWN: Mapping[str, str] = {"/": FIRST_PAGE, "/help": GLOSSARY}
"""Help for the pages of the frame itself."""
EVERYWHERE = ((N_("First steps"), FIRST_PAGE), (N_("Refusals and errors"), REFUSED), (N_("All words of the glossary"), GLOSSARY))
"""What the hub's own help names besides the links of the menu."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of the menu. `title` is an English msgid."""

    name: GroupName
    title: str
    icon: str


GROUPS = (
    Group(name="data", title=N_("Data"), icon="data"),
    Group(name="ask", title=N_("Ask"), icon="ask"),
    Group(name="learn", title=N_("Learn"), icon="learn"),
    Group(name="publish", title=N_("Publish"), icon="share"),
    Group(name="collect", title=N_("Collect"), icon="survey"),
    Group(name="govern", title=N_("Govern"), icon="policy"),
)


@dataclass(frozen=True, kw_only=True)
class MenuLink:
    """A link of the menu, as it is on one page."""

    title: str
    path: str
    icon: str
    current: bool
    help: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A group, of which `links` are shown where it is unfolded; or a link alone."""

    title: str
    icon: str
    links: tuple[MenuLink, ...]
    current: bool

    @property
    def alone(self) -> MenuLink | None:
        """The link, where it is the only one."""
        return self.links[0] if len(self.links) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Menu:
    """The entries of the menu, and the links of one's own account."""

    entries: tuple[Entry, ...] = ()
    account: tuple[MenuLink, ...] = ()


def menu_of(links: Iterable[Link], may: Callable[[str], bool], path: str) -> Menu:
    """The menu of somebody who may do these actions, on the page of an address: the longest link that leads there or above it is
    the current one.

    >>> link = Link("Answers", "/releases", "release.see", "ask", 50, "answers", help="how-to/ask-a-hub")
    >>> menu_of([link], lambda action: True, "/releases/1").entries[0].alone.current
    True
    >>> menu_of([link], lambda action: False, "/").entries
    ()
    """
    shown = [link for link in links if may(link.action)]
    above = [link.path for link in shown if path == link.path or path.startswith(link.path.rstrip("/") + "/")]
    longest = max(above, key=len, default=None)

    def of(group: GroupName) -> tuple[MenuLink, ...]:
        return tuple(
            MenuLink(title=link.title, path=link.path, icon=link.icon or "arrow", current=link.path == longest, help=link.help)
            for link in shown
            if link.group == group
        )

    entries = (
        Entry(title=group.title, icon=group.icon, links=found, current=any(link.current for link in found))
        for group in GROUPS
        if (found := of(group.name))
    )
    return Menu(entries=tuple(entries), account=of(ACCOUNT))


def help_for(pages: Mapping[str, str], path: str) -> str:
    """The page of the documentation for an address, by the longest pattern that leads there or above it.

    >>> pages = {"/datasets": "how-to/share-a-data-set", "/datasets/*/access": "reference/permissions"}
    >>> help_for(pages, "/datasets/visits"), help_for(pages, "/datasets/visits/access/new"), help_for(pages, "/nowhere")
    ('how-to/share-a-data-set', 'reference/permissions', 'tutorials/a-first-hub')
    """
    parts = path.strip("/").split("/")

    def leads(pattern: str) -> bool:
        wanted = pattern.strip("/").split("/")
        return len(wanted) <= len(parts) and all(each in ("*", part) for each, part in zip(wanted, parts, strict=False))

    known = {**pages, **OWN}
    found = [pattern for pattern in known if leads(pattern)]
    return known[max(found, key=lambda pattern: (pattern.count("/"), len(pattern)))] if found else FIRST_PAGE


def guides(known: Iterable[Link | Guide]) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each group, titles of pages with the page of the documentation for each; msgids. The frame's own come first.

    >>> [title for title, _ in guides([])]
    ['Everywhere']
    """
    titles = [*((group.name, group.title) for group in GROUPS), (ACCOUNT, N_("Your account"))]
    given = list(known)
    by_group = {name: list(dict.fromkeys((each.title, each.help) for each in given if each.group == name)) for name, _ in titles}
    return [(N_("Everywhere"), list(EVERYWHERE)), *((title, by_group[name]) for name, title in titles if by_group[name])]


def help_address(docs: str, page: str) -> str:
    """Where that page is read: in the documentation, or where this hub doesn't know its address, in the hub's own help.

    >>> help_address("https://docs.example.org/", "how-to/ask-a-hub"), help_address("", "how-to/ask-a-hub")
    ('https://docs.example.org/how-to/ask-a-hub.html', '/help#how-to-ask-a-hub')
    """
    return f"{docs.rstrip('/')}/{page}.html" if docs else f"/help#{anchor(page)}"


def anchor(page: str) -> str:
    """Where the hub's own help says of a page of the documentation.

    >>> anchor("how-to/ask-a-hub")
    'how-to-ask-a-hub'
    """
    return page.replace("/", "-")
