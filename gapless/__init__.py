"""gapless: plan and run pipelines of neural networks over the unequal processors of one device.

>>> import gapless
>>> result = gapless.plan(gapless.load_problem("pixel7a/alexnet-sparse"), backend="native", top=3)
>>> print(result.plan)
0-0 Big | 1-3 GPU | 4-4 Little | 5-8 Medium

What most programs need stands in `__init__.pyi`, the rest in modules by subject (`gapless.coordination`,
`gapless.clusters`, ...). Both are loaded when they are first used, so that `import gapless` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from os.path import splitext

from .version import __version__ as __version__


def _modules_of_names() -> dict[str, str]:
    """Return the module of each public name, from the lines `from MODULE import NAME as NAME` of the stub."""
    with open(f"{splitext(__file__)[0]}.pyi", encoding="utf-8") as stub:
        words = [line.split() for line in stub if line.startswith("from .")]
    return {name: module for _, module, _, name, *_ in words if name != "__version__"}


def __getattr__(name: str) -> object:
    # The command line starts here, too: what it need not load is not loaded.
    modules = _modules_of_names()
    if name == "__all__":
        value: object = sorted(modules)
    elif name in modules:
        module = modules[name]
        home = import_module(f".{name}" if module == "." else module, __name__)
        value = home if module == "." else getattr(home, name)
    else:
        if home := _elsewhere(name):  # an error that `from gapless import NAME` shows, too
            raise ImportError(f"{name} is not in gapless, it is in {home}: from {home} import {name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str:
    """Return the module by subject that a name is in: once all were here; empty: it is in none."""
    if name.startswith("_"):
        return ""
    subjects = (f"{__name__}.{one}" for one, module in _modules_of_names().items() if module == ".")
    return next((one for one in subjects if name in getattr(import_module(one), "__all__", ())), "")


def __dir__() -> list[str]:
    return sorted(_modules_of_names())
