"""Where guests run: CPython as a WebAssembly component, in a process that holds no keys, no ledger and no other guest.

    app.py    what runs inside, an interpreter with one function (guest.wit): built once on this machine
    image.py  builds that image, compiles it, and loads nothing that anybody else may have written
    worker.py the process: a program of its own that imports nothing of ours
    wasm.py   the host's side of it: one guest, many runs, each from the same beginning

Lives here: what a guest can and cannot touch. May not live here: rows' meaning, guarantees, budgets.
"""
