"""The frame in which services carry work out: what every request that reads rows goes through, whoever's it is.

- `idempotency.py`: the same key gives the same answer, though the process dies. `concurrency.py`: how much is
  worked on at once, and of one person.
- `authorise.py`, `bounds.py`: from what is asked for to a session that knows only what the decisions leave, within the ceilings
  and shares that the ledger holds each charge against.
- `offers.py`: what somebody may run now, on which data sets, for the pages that offer it.
- `one_table.py`: the same of columns of one private table.
- `submitting.py`, `attempts.py`: work as a job: put into the queue once, and a second attempt goes on under what the first was
  charged.
- `orders.py`: work that is ordered and done as a job, whole: a service says what is its own.
- `owner_view.py`: what is no release: exact, for the owner of a data set alone.
- `recheck.py`: what was revoked meanwhile keeps back what was made; every refusal has its audit entry.

A service says what its work touches and costs (`authorise.Work`), runs it on the session that it gets, and keeps what was made
with its audit entry in one transaction. Reserving and settling are the session's; deciding is `hub/decisions`'s. No rule lives
here, and no row.
"""
