"""Notebooks to go on from a release: text and code, which were never run, so that a file holds no outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def notebook(cells: Sequence[tuple[str, str]]) -> bytes:
    """A Jupyter notebook (nbformat 4.5) of cells, each `markdown` or `code` with its source.

    >>> told = json.loads(notebook([("markdown", "# People"), ("code", "a = 1\\nb = 2")]))
    >>> told["nbformat"], [each["cell_type"] for each in told["cells"]], told["cells"][1]["outputs"]
    (4, ['markdown', 'code'], [])
    """
    told: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": source.splitlines(keepends=True)}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for place, (kind, source) in enumerate(cells)
    ]
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": told, "metadata": python, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode()
