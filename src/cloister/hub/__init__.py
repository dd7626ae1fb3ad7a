"""The hub: people, roles, budgets and questions, in a browser, in Python and in psql.

- The frame: `settings.py`, `database.py`, `keys.py`, `ids.py` say what a hub stands on; `hub.py` holds them together and says
  who asks, `guard.py` whether that kind of person may; `service.py` is what a service brings; `app.py` puts services
  on the web.
- `policy/`: decisions as pure functions of who, what, which and context.
- `services/`: one package each, with its routes, pages, API, jobs and permissions; `services/__init__.py` lists them, a line
  each.
- `storage/`: tables at rest, encrypted, a key a version. `web/`: how pages look and speak. The wire of PostgreSQL is
  a room below the hub, `pgwire`.

What may not live here: a method of privacy (floor 3 and below), and any way to private rows but the session's door.
"""
