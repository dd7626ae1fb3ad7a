"""Prio3: people send shares of a number to servers that add them up and check them, and none of which can read one.

    circuits.py   what may be sent: a bit, a number of a range, one of many buckets; and how a proof of it is made and checked
    reports.py    one report: its shares, its check, its messages as bytes
    servers.py    a server that checks and adds reports, once each, and puts its noise into the sum

Written to the IRTF's draft "Verifiable Distributed Aggregation Functions", version 20, and checked against its published vectors.
"""

from cloister.together.prio3.circuits import Circuit, Count, Histogram, Sum
from cloister.together.prio3.reports import KEY_BYTES, Prio3, Report
from cloister.together.prio3.servers import PrioServer, PrioSum, opened

__all__ = ["KEY_BYTES", "Circuit", "Count", "Histogram", "Prio3", "PrioServer", "PrioSum", "Report", "Sum", "opened"]
