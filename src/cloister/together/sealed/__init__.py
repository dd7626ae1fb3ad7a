"""Sealed tables: owners upload masked cells once, and may be offline afterwards.

format.py     which cells owners upload of a row, and what can be asked later
batches.py    masked cells, as files: what an owner writes, and what hub and key holder add up
sums.py       a request's integers from sums of cells
holder.py     the key holder: its ledger, its noise, and the proof
table.py      a table of masked cells, asked like any other
renewing.py   new keys for batches that are there
wire.py       the key holder as a process of its own, which dials out to its hub
"""
