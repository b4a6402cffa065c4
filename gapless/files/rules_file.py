"""Rules files: Python files whose functions are rules.

A rules file is code, and reading it runs it: use only files that you trust. Every public function that
the file itself defines and that takes exactly one positional parameter is a rule, named like the
function; so are `Rule`s and `OpaqueRule`s, and ready-made rules such as `pin("conv1", unit="GPU")`, that
public names of the file hold. Names that begin with an underscore, predicates of `OpaqueRule`s, imported
functions and functions of other shapes are helpers. A file that defines a list `RULES` gives exactly the
rules of that list.

    from gapless.rules import pin

    first_on_big = pin("conv1", unit="Big")

    def gpu_needs_big(view):
        return view.uses("GPU").implies(view.uses("Big"))
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

from .. import formulations
from ..formulations.errors import ExpressionError, InvalidInputError
from ..formulations.plugins import execute, line_in, new_module
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, OpaqueRule, Rule, RuleFunction
from ..formulations.validation import python_hint

MAX_FILE_BYTES = 2**20

RuleSource = RuleFunction | AnyRule


def load_rules(path: str | Path) -> tuple[RuleSource, ...]:
    """Run a rules file and return its rules, in the order in which they are written."""
    path = Path(path)
    module = run_python(path, "rules file")
    rules = _listed(module, path) if "RULES" in vars(module) else tuple(_found(module))
    if not rules:
        raise InvalidInputError(
            f"{path} defines no rules: a rule is a function with one parameter (the view), e.g. "
            'def big_first(view): return view.on(0, "Big")'
        )
    return rules


def add_rules(problem: Problem, path: str | Path) -> Problem:
    """Return the problem with the rules of a file."""
    path, broken = Path(path), []
    for rule in load_rules(path):
        try:
            problem = problem.with_rules(rule)
        except (InvalidInputError, ExpressionError) as error:
            broken.append(f"{_where(error, rule, path)}{_one_line(error)}")
    if broken:
        raise InvalidInputError(f"{path} has rules that cannot be used:", broken)
    return problem


def run_python(path: Path, what: str) -> ModuleType:
    """Run a Python file of the user and return its names; `what` it is, for messages."""
    try:
        with path.open("rb") as file:
            source = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"cannot read the {what} {path}: {reason}") from error
    if len(source) > MAX_FILE_BYTES:
        raise InvalidInputError(f"the {what} {path} has more than {MAX_FILE_BYTES} bytes")
    module = new_module(path)
    try:
        execute(module, source)
    except SyntaxError as error:
        raise InvalidInputError(f"{path}, line {error.lineno or 1}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        where = f"{path}, line {line_in(error, str(path)) or 1}"
        hint = python_hint(error, vars(module))
        raise InvalidInputError(f"{where}: {type(error).__name__}: {error}{hint}") from error
    return module


def _listed(module: ModuleType, path: Path) -> tuple[RuleSource, ...]:
    rules = module.RULES
    if not isinstance(rules, list | tuple):
        raise InvalidInputError(f"{path}: RULES is a {type(rules).__name__}, must be a list of rules")
    for index, rule in enumerate(rules):
        if not isinstance(rule, Rule | OpaqueRule) and not callable(rule):
            raise InvalidInputError(f"{path}: RULES[{index}] is {rule!r}, not a rule")
    return tuple(rules)


def _found(module: ModuleType) -> Iterator[RuleSource]:
    predicates = [value.predicate for value in vars(module).values() if isinstance(value, OpaqueRule)]
    for name, value in vars(module).items():
        if name.startswith("_") or value in predicates:
            continue
        if isinstance(value, Rule | OpaqueRule):
            yield value
        elif isinstance(value, FunctionType) and _is_rule(value, module):
            if value.__name__ == "<lambda>":
                value.__name__ = name
            yield value


def _is_rule(function: FunctionType, module: ModuleType) -> bool:
    """Return whether a function is a rule: of the file itself with one parameter, or made by `pin`."""
    if function.__module__.startswith(f"{formulations.__name__}."):
        return "<locals>" in function.__qualname__
    if function.__module__ != module.__name__:
        return False
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return kinds in ([inspect.Parameter.POSITIONAL_OR_KEYWORD], [inspect.Parameter.POSITIONAL_ONLY])


def _where(error: Exception, rule: RuleSource, path: Path) -> str:
    """Return the line where a rule went wrong, or else where it begins, as the start of a message."""
    causes = (error, error.__cause__, getattr(error.__cause__, "__cause__", None))
    lines = [line for cause in causes if cause is not None and (line := line_in(cause, str(path)))]
    if not lines and isinstance(rule, FunctionType) and rule.__code__.co_filename == str(path):
        lines = [rule.__code__.co_firstlineno]
    return f"line {lines[-1]}: " if lines else ""


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 500 else f"{text[:500]}..."
