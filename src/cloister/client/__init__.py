"""A hub as a session: the questions of `cloister.Session`, answered by a hub far away.

- `connecting.py` checks the address and the token, and opens the connection.
- `session.py` is the session, with what it says of budgets and data sets, and models learnt there; `plan.py` what it explains.
- `anonymizing.py` has tables anonymised there.
- `transport.py` asks, again where the connection was lost, and waits for what takes long; `refusals.py` turns problems into the
  errors of `cloister.errors`.

Nothing here sees a row or draws noise: what comes back is a release, or a model that was learnt. The hub's own code is not needed
here, and not used.
"""

from cloister.client.anonymizing import AnonymizedTable
from cloister.client.connecting import connect
from cloister.client.refusals import HubError, HubUnreachable
from cloister.client.session import RemoteSession

__all__ = ["AnonymizedTable", "HubError", "HubUnreachable", "RemoteSession", "connect"]
