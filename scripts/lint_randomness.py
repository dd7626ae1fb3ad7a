"""Randomness comes from one place: nothing in src/cloister outside noise/ may touch another source of it.

    python scripts/lint_randomness.py [root …]       # default: src/cloister

Reads syntax trees, not text, and follows names: `import numpy as x; y = x.random; y.normal()` is found. What is forbidden is
listed in FORBIDDEN, by full dotted name; a name below a forbidden one is forbidden as well. Prints `path:line: what was found`
and exits 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FORBIDDEN = frozenset(
    {
        "random",
        "secrets",
        "numpy.random",
        "os.urandom",
        "os.getrandom",
        "posix.urandom",
        "posix.getrandom",
        "ssl.RAND_bytes",
        "ssl.RAND_add",
        "uuid.uuid1",
        "uuid.uuid4",
        "scipy.stats.sampling",
        "scipy.stats.qmc",
        "cryptography.hazmat.backends.openssl.rand",
        "cryptography.hazmat.bindings._rust.openssl.rand",
        "mpmath.rand",
        "mpmath.mp.rand",
        "mpmath.mp.randmatrix",
        "mpmath.randmatrix",
        "gmpy2.random_state",
        "gmpy2.mpz_random",
        "gmpy2.mpz_urandomb",
        "gmpy2.mpz_rrandomb",
        "gmpy2.mpfr_random",
        "gmpy2.mpfr_grandom",
        "gmpy2.mpfr_nrandom",
        "sklearn.utils.check_random_state",
        "torch.rand",
        "torch.randn",
        "torch.randint",
        "torch.randperm",
        "torch.normal",
        "torch.bernoulli",
        "torch.multinomial",
        "torch.poisson",
        "torch.manual_seed",
        "torch.Generator",
        "torch.distributions",
    }
)
"""Full names of what draws randomness, or of modules whose whole purpose it is."""

FORBIDDEN_METHODS = frozenset({"rvs", "default_rng", "urandom", "standard_normal", "generate_key", "generate_private_key"})
"""Method names that draw, whatever the object is: `scipy.stats.norm.rvs`, `AESGCM.generate_key`, …"""

PARENTS = frozenset(name.rpartition(".")[0] for name in FORBIDDEN)
"""Modules of which a star import would bring a forbidden name in."""

FORBIDDEN_DEVICES = frozenset({"/dev/random", "/dev/urandom", "/dev/hwrng"})
ALLOWED_ROOM = "noise"
ALLOWED_FILES = frozenset({"guests/sandbox/app.py"})
"""What a guest can import inside the sandbox, where numbers repeat and protect nobody; the host imports none of it."""
ALLOWED_METHODS: dict[str, frozenset[str]] = {}
"""By path below the root: method names that one file may use, because it makes keys and not noise. Each entry needs a comment."""


class Finding(NamedTuple):
    """One place where randomness comes from elsewhere."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: randomness comes from cloister.noise.Random alone"


def findings(root: Path) -> list[Finding]:
    """Every forbidden use below `root`, except in the room that is there for it."""
    found: list[Finding] = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] != ALLOWED_ROOM and inside.as_posix() not in ALLOWED_FILES:
            allowed = ALLOWED_METHODS.get(inside.as_posix(), frozenset())
            found += [Finding(path, line, what) for line, what in findings_in(path.read_text(encoding="utf-8"), allowed)]
    return found


def findings_in(source: str, allowed_methods: frozenset[str] = frozenset()) -> list[tuple[int, str]]:
    """Line and dotted name of each forbidden use in a source text, in the order of lines, each once."""
    tree = ast.parse(source)
    names = _names_of(tree)
    return sorted(set(_uses(tree, names, allowed_methods)))


def forbidden(full_name: str) -> bool:
    """Whether a dotted name is forbidden, or lies below one that is."""
    parts = full_name.split(".")
    return any(".".join(parts[:length]) in FORBIDDEN for length in range(1, len(parts) + 1))


def _names_of(tree: ast.AST) -> dict[str, set[str]]:
    """What each local name may stand for: imports first, then plain assignments of dotted names, until nothing new comes."""
    names: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names.setdefault(bound, set()).add(alias.name if alias.asname else bound)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
    changed = True
    while changed:
        changed = False
        for target, value in _bindings(tree):
            fresh = _full_names(value, names) - names.get(target, set())
            if fresh and all(name.count(".") < 8 for name in fresh):
                names.setdefault(target, set()).update(fresh)
                changed = True
    return names


def _bindings(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Each `name = expression` in the tree, in its several spellings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    yield from ((one.id, value) for one, value in pairs if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _full_names(node: ast.expr, names: dict[str, set[str]]) -> set[str]:
    """The dotted names that an expression may stand for; empty where it is no chain of names."""
    if isinstance(node, ast.Name):
        return names.get(node.id, set())
    if isinstance(node, ast.Attribute):
        return {f"{base}.{node.attr}" for base in _full_names(node.value, names)}
    if isinstance(node, ast.Call):
        return _dynamic(node, names)
    if isinstance(node, ast.BoolOp):
        return set().union(*(_full_names(value, names) for value in node.values))
    if isinstance(node, ast.IfExp):
        return _full_names(node.body, names) | _full_names(node.orelse, names)
    return set()


def _dynamic(call: ast.Call, names: dict[str, set[str]]) -> set[str]:
    """`__import__("x")`, `importlib.import_module("x")` and `getattr(x, "y")` with literal texts, as the names that they give."""
    texts = [argument.value for argument in call.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
    called = _full_names(call.func, names) if not isinstance(call.func, ast.Name) else names.get(call.func.id, {call.func.id})
    if texts and called & {"__import__", "builtins.__import__"}:
        return {texts[0].partition(".")[0]}
    if texts and called & {"importlib.import_module", "importlib.__import__"}:
        return {texts[0]}
    if texts and called & {"getattr", "builtins.getattr"}:
        return {f"{base}.{texts[0]}" for base in _full_names(call.args[0], names)}
    return set()


def _uses(tree: ast.AST, names: dict[str, set[str]], allowed_methods: frozenset[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"import {alias.name}") for alias in node.names if forbidden(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _from_imports(node)
        elif isinstance(node, ast.Attribute):
            found = sorted(name for name in _full_names(node, names) if forbidden(name))
            if found:
                yield node.lineno, found[0]
            elif node.attr in FORBIDDEN_METHODS - allowed_methods:
                yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, name) for name in sorted(_dynamic(node, names)) if forbidden(name))
        elif isinstance(node, ast.Constant) and node.value in FORBIDDEN_DEVICES:
            yield node.lineno, str(node.value)


def _from_imports(node: ast.ImportFrom) -> Iterator[tuple[int, str]]:
    module = node.module or ""
    for alias in node.names:
        star = alias.name == "*" and module in PARENTS
        if star or forbidden(f"{module}.{alias.name}"):
            yield node.lineno, f"from {module} import {alias.name}"


def main(arguments: list[str]) -> int:
    """Lint the given roots; 1 where anything was found."""
    roots = [Path(argument) for argument in arguments] or [Path(__file__).resolve().parent.parent / "src" / "cloister"]
    found = [finding for root in roots for finding in findings(root)]
    for finding in found:
        print(finding)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
