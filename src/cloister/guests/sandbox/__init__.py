"""Where guests run: CPython as a WebAssembly component, in a process that holds no keys, no ledger and no other guest;

    app.py    what runs inside, an interpreter with one function (guest.wit): built once on this machine
    image.py  builds that image, compiles it, and loads nothing that anybody else may have written
    worker.py the process: a program of its own that imports nothing of ours
    wasm.py   the host's side of it: one guest, many runs, each from the same beginning
    grid.py   when runs begin and end, and when an answer comes: of both sandboxes

and, for admitted code that needs numpy, scikit-learn or R, processes behind bubblewrap's walls.

    processes.py    the host's side: walls, a request and a reply as files in memory, runs on a grid of time
    fork_server.py  the program within, which imports packages before rows arrive; and the fork for each run of both sandboxes
    control_groups.py  what a run may use in sum
    environments.py    packages by their hashes
    seccomp.py      the system calls that are left
    r_script.py     rows and code as one text of R
    opening.py      which of the two a guest needs, and what this machine has

Lives here: what a guest can and cannot touch. May not live here: rows' meaning, guarantees, budgets.
"""
