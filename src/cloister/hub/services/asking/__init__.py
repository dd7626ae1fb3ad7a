"""Questions: explained, rehearsed, asked; and the answers, as releases.

- `question_request.py`, `authorised.py`, `answering.py`, `keeping.py`: a query in the frame (`hub/work`), from what somebody
  wants to what leaves, at once or as a job; `preview.py`: what is known before; `watching.py`: profiles, looked at after.
- `answers.py`: answers as a kind of release (`hub/releases`), their titles and files; `charts.py`, `showing.py`: their
  pages; `saved.py`: queries that are kept.
- `boards.py`: dashboards; `publishing.py`: views of answers that pages of other sites frame.
- `api.py`, `shapes.py`, `pages.py`, `pages_*.py`: the routes. `pg.py`: the front for PostgreSQL clients.

What may not live here: a decision about who may what (`access`), and rows (the session's door).
"""

from typing import Any

from sqlalchemy.orm import Session

from cloister.hub.hub import Caller, Hub
from cloister.hub.records.access import Project
from cloister.hub.service import Card, Direct, Guide, Link, Service, routes_in
from cloister.hub.services.asking.answering import QUESTION, Answered, ask, ask_together, stored
from cloister.hub.services.asking.answers import ANSWER
from cloister.hub.services.asking.preview import explain, preview, rehearse
from cloister.hub.services.asking.question_request import QuestionRequest, check_settings
from cloister.hub.services.asking.watching import watched, watching

__all__ = ["SERVICE", "Answered", "QuestionRequest", "ask", "ask_together", "explain", "preview", "rehearse", "stored"]

_FEW, _SHOWN = 5, 50


def _direct() -> tuple[Direct, ...]:
    from cloister.hub.services.asking.api import DIRECT

    return (DIRECT,)


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The newest answers that somebody may see, for anyone who asks questions."""
    from cloister.hub.releases.reading import releases_of
    from cloister.hub.services.asking.answers import asked

    rows = releases_of(hub, db, caller, limit=_FEW)
    if not rows and not caller.has("analyst"):
        return []
    return [Card(template="asking/card.html", values={"releases": rows, "asked": asked}, order=20)]


def _in_project(hub: Hub, db: Session, caller: Caller, row: Project) -> dict[str, Any]:
    """What was released in a project, or shown to it, that this member may see now, the newest first."""
    from cloister.hub.releases.reading import releases_of
    from cloister.hub.services.asking.answers import asked

    inside = row.id in caller.projects
    found = releases_of(hub, db, caller, kind="all", which="projects", project=row.id, limit=_SHOWN) if inside else []
    return {"releases": found, "asked": asked}


def _opened(hub: Hub) -> None:
    watching(hub)
    if hub.settings.pg_port:
        from cloister.hub.services.asking.pg import start

        start(hub)


def _closed(hub: Hub) -> None:
    if hub.settings.pg_port:
        from cloister.hub.services.asking.pg import stop

        stop(hub)
    watched(hub)


SERVICE = Service(
    name="asking",
    title="Queries",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    busy=True,
    direct=_direct,
    jobs=(QUESTION,),
    releases=(ANSWER,),
    algorithm=check_settings,
    links=(
        Link("Ask in SQL", "/ask", "question.ask", "ask", 20, "ask", help="how-to/ask-a-hub"),
        Link("Build a query", "/ask/build", "question.ask", "ask", 21, "table", help="how-to/ask-without-sql"),
        Link("Answers", "/releases", "release.see", "ask", 25, "answers", help="how-to/ask-a-hub"),
        Link("Dashboards", "/dashboards", "question.see", "ask", 26, "project", help="how-to/ask-a-hub"),
        Link("Published views", "/published", "release.publish", "publish", 40, "share", help="how-to/publish-an-answer"),
    ),
    guides=(
        Guide(title="Saved queries", path="/questions", group="ask", help="how-to/ask-a-hub"),
        Guide(title="Published views", path="/shown", group="publish", help="how-to/publish-an-answer"),
    ),
    cards=_cards,
    in_project=_in_project,
    opened=_opened,
    closed=_closed,
)
