"""What left, whatever its kind: answers, models, anonymised tables.

- `derived.py`: the rules that hold for data hold for what was derived from it, at each look, download and share.

What may not live here: how a kind of release is made (its service), and rows.
"""
