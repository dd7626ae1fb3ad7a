"""The lint that keeps randomness in one room finds every planted way around it, and nothing in honest code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import lint_randomness
from scripts.lint_randomness import findings, findings_in

ROOT = Path(__file__).resolve().parents[2]

PLANTED = {
    "the module": ("import random", 1),
    "the module under another name": ("import random as r\nr.gauss(0, 1)", 2),
    "from the module": ("from random import gauss", 1),
    "secrets": ("import secrets", 1),
    "secrets, a function": ("from secrets import token_bytes as t", 1),
    "numpy.random": ("import numpy.random", 1),
    "numpy.random, under another name": ("import numpy.random as nr", 1),
    "from numpy": ("from numpy import random as chance", 1),
    "from numpy.random": ("from numpy.random import default_rng", 1),
    "an attribute of numpy": ("import numpy as np\nx = np.random.normal(0, 1)", 2),
    "an attribute through a second name": ("import numpy as np\nlib = np\nx = lib.random", 3),
    "an attribute through a tuple": ("import numpy as np\na, b = np, 1\na.random.normal()", 3),
    "an attribute through a choice": ("import numpy as np\nlib = np if 1 else None\nlib.random", 3),
    "an attribute through a walrus": ("import numpy as np\n(lib := np)\nlib.random", 3),
    "inside a function": ("def f():\n    import numpy as np\n    return np.random.rand()", 3),
    "getattr": ("import numpy as np\ngetattr(np, 'random')", 2),
    "import_module": ("import importlib\nimportlib.import_module('numpy.random')", 2),
    "__import__": ("__import__('random')", 1),
    "everything of os": ("from os import *", 1),
    "os.urandom": ("import os\nos.urandom(8)", 2),
    "os.urandom, imported": ("from os import urandom", 1),
    "os.getrandom under another name": ("import os as system\nsystem.getrandom(8)", 2),
    "the device": ("open('/dev/urandom', 'rb')", 1),
    "uuid4": ("import uuid\nuuid.uuid4()", 2),
    "uuid1": ("from uuid import uuid1", 1),
    "ssl": ("import ssl\nssl.RAND_bytes(8)", 2),
    "scipy's rvs": ("from scipy import stats\nstats.norm.rvs(size=3)", 2),
    "scipy's rvs, frozen": ("from scipy.stats import norm\nnorm(0, 1).rvs()", 2),
    "a key of cryptography": ("from cryptography.hazmat.primitives.ciphers.aead import AESGCM\nAESGCM.generate_key(128)", 2),
    "mpmath": ("import mpmath\nmpmath.rand()", 2),
    "torch": ("import torch\ntorch.randn(3)", 2),
    "a generator from a passed module": ("def f(np):\n    return np.default_rng()", 2),
}

HONEST = {
    "our own source": "from cloister.noise import Random, default_random\nrandom = default_random()\nrandom.bytes(8)",
    "a parameter of that name": "def f(random=None):\n    return random.below(5, 1)",
    "another numpy": "import numpy as np\nnp.linalg.norm([1])",
    "another uuid": "import uuid\nuuid.uuid5(uuid.NAMESPACE_DNS, 'x')",
    "a text": "note = 'never use numpy.random or os.urandom'",
    "a relative import": "from . import random\nfrom .random import Random",
    "another os": "import os\nos.getpid()",
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_use_is_found(name: str) -> None:
    source, line = PLANTED[name]
    found = findings_in(source)
    assert found, f"{name} went unseen"
    assert found[-1][0] == line


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_passes(name: str) -> None:
    assert findings_in(HONEST[name]) == []


def test_each_forbidden_name_is_found_however_it_is_imported() -> None:
    for name in lint_randomness.FORBIDDEN:
        module, _, last = name.rpartition(".")
        assert findings_in(f"import {name}" if not module else f"from {module} import {last}"), name


def test_only_the_noise_room_is_exempt(tmp_path: Path) -> None:
    for room in ("noise", "tables", "tables/noise", "noisy"):
        (tmp_path / room).mkdir(parents=True, exist_ok=True)
        (tmp_path / room / "draws.py").write_text("import secrets\n")
    (tmp_path / "noise.py").write_text("import secrets\n")
    seen = {finding.path.relative_to(tmp_path).as_posix() for finding in findings(tmp_path)}
    assert seen == {"tables/draws.py", "tables/noise/draws.py", "noisy/draws.py", "noise.py"}


def test_as_a_command_it_names_the_place_and_fails(tmp_path: Path) -> None:
    (tmp_path / "query.py").write_text("x = 1\nimport random\n")
    command = [sys.executable, str(ROOT / "scripts" / "lint_randomness.py"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "query.py:2: import random" in ran.stdout


@pytest.mark.slow  # by day `make test` runs the lint itself over the package
def test_the_package_itself_is_clean() -> None:
    assert findings(ROOT / "src" / "cloister") == []
