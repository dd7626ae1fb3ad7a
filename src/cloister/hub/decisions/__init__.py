"""Who may do what: decisions, and the facts that they are made from. Nothing here knows a service.

- `policy/`: decisions as pure functions of (who, what, which, context, the institution's rules).
- `callers.py`: people, as they stand now. `facts.py`, `checking.py`: from the database to a decision of `policy`, and a no as an
  error. `held.py`: on which tables it is decided and carried out.
"""
