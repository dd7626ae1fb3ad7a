"""What left, whatever its kind: answers, models, anonymised tables; one table, one set of rules, lists, pages and routes.

- `kinds.py`: what a service says of a kind of release that is its own: words, page, files, what a program reads.
- `derived.py`: the rules that hold for data hold for what was derived from it, at each look, download and share.
- `reading.py`: who may see which, and whether what was shown still is; it leaves as a file. `sharing.py`: to whom it is shown.
- `tables.py`: releases that SQL can be asked of, at no cost.
- `rows.py`: their rows as files. `deriving.py`: what is made of releases alone; `pooling.py`: one of several.
- `comparing.py`: one against the rows that it was made of, for their owner.
- `notebooks.py`: notebooks to go on from a release.
- `api.py`, `shapes.py`, `pages.py`: the routes.

What may not live here: how a kind of release is made (its service), and rows.
"""
