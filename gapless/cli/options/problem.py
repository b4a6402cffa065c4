"""Options that several commands share, and what they mean: a problem as the user asks for it.

The options of a problem are the fields of a question (`gapless.question`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ...formulations.errors import InvalidInputError
from ...formulations.plugins import trust
from ...question.question import Field, Question, asked_fields
from ..base.answer import takes
from ..base.general_options import heading, output_option
from ..base.help import ASKED
from .solving import SolvingOptions

if TYPE_CHECKING:
    from ...api.asked import Asked
    from ...files.plans import NamedPlan
    from ...formulations.problem import Problem

_asked_option = heading(ASKED)

OptionalProblemArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PROBLEM",
        help="A problem file, or a shipped name such as pixel7a/alexnet-sparse (see `gapless list "
        "problems`); a plan or a folder of `gapless tune` stands for its problem. With --platform and a "
        "cluster: a model, an ONNX file or a built-in network (see `gapless list networks`). Not needed with "
        "--workload.",
        show_default=False,
    ),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[PROBLEM] PLAN",
        help="A plan or a list of plans, as written by `gapless plan --out`, a deployment, or a folder of "
        "`gapless tune`; before it the problem, if the plan does not say which one it is for, or is to be "
        "looked at for another one.",
        show_default=False,
    ),
]
NumberOption = Annotated[
    int | None,
    typer.Option("--plan", min=1, help="Which plan of a list, from 1; otherwise the first, the best."),
]
RulesOption = Annotated[
    Path | None,
    _asked_option(
        help="A Python file of rules: every public function in it with one parameter (the view). "
        "The file is run: use only files that you trust."
    ),
]
OutOption = Annotated[Path | None, output_option("--out", "-o", help="Also write it to this file.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemOptions:
    """Which problem is asked for, as the argument and the options say it."""

    question: Question = Question()
    rules: Path | None = None

    @property
    def change(self) -> Callable[[Problem], Problem] | None:
        """What adds the rules; None: there are none."""
        from ...files.rules_file import add_rules

        return None if self.rules is None else partial(add_rules, path=self.rules)

    @property
    def names(self) -> list[str]:
        """The options that were given, and PROBLEM."""
        found = ["PROBLEM" if option == "--problem" else option for option in self.question.options()]
        return [*found, *(["--rules"] if self.rules else [])]


def _parameters_of(names: Sequence[str]) -> Iterator[tuple[str, Field]]:
    """Yield the fields of these names, all of them without names, and what their parameters are called."""
    for field in asked_fields():
        if not names or field.name in names:
            yield field.option.removeprefix("--").replace("-", "_"), field


def question_parameters(*names: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a command that become fields of a question; no names: all, and rules."""
    found = {}
    for called, field in _parameters_of(names):
        kind: Any
        default: Any = None
        if field.name == "problem":
            kind = OptionalProblemArgument
        elif field.flag is not None:
            kind, default = Annotated[bool, _asked_option(field.option, help=field.help)], False
        else:
            taken: Any = list[str] if field.form.repeated else str
            option = _asked_option(field.option, metavar=field.form.metavar, help=field.help)
            kind = Annotated[taken | None, option]
        found[called] = _parameter(called, kind, default)
        if field.name == "objective" and not names:
            found["rules"] = _parameter("rules", RulesOption, None)
    return found


def take_question(given: dict[str, Any], *names: str) -> Question:
    """Take what a question is made of out of the values of options; `names`: as for `question_parameters`.

    Raises InvalidInputError: a value is not valid; the option is named.
    """
    values = {}
    for called, field in _parameters_of(names):
        value = given.pop(called, None)
        if value in (None, False, []):
            continue
        text = " ".join(value) if field.form.repeated else str(value)
        values[field.name] = field.flag if field.flag is not None else field.read(text, in_file=False)
    return Question().with_values(values)


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def with_question(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what gives a command options of these fields in the place of its parameter `question`."""

    def wrapped(command: Callable[..., Any]) -> Callable[..., Any]:
        own = _parameters(command)
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.items():
            parameters += question_parameters(*names).values() if name == "question" else [parameter]

        @wraps(command)
        def asked(**given: Any) -> Any:
            return command(question=take_question(given, *names), **given)

        takes(asked, (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters))
        return asked

    return wrapped


def ask(options: ProblemOptions) -> Asked:
    """Return the problem with the objective, limits and rules of the command line."""
    from ...files.plans import problem_named

    trust(options.question.problem or "")
    return problem_named(options.question, options.change)


def _for_backends(asked: Asked, given: Mapping[str, Any]) -> Asked:
    """Return what is asked with one chunk per unit, where that is all that is compared.

    `given`: the other options of the command.
    """
    from ...api.asked import for_backends, in_once

    if asked.once is not None and given.get("layer_orders") is not None:
        return in_once(asked.once, "--layer-orders compares plans of that kind")
    names = [*(given.get("backends") or "").split(","), given.get("backend") or ""]
    return for_backends(asked, [name.strip() for name in names if name.strip()])


def ask_plan(
    files: Sequence[str], options: ProblemOptions = ProblemOptions(), number: int | None = None
) -> tuple[Asked, NamedPlan]:
    """Return the problem and the plan of [PROBLEM] PLAN.

    What is given counts, and what is not given is as it was when the plan was made.

    `files`: a plan file, a list, a deployment or the folder of a run; the problem may stand before it.
    `number`: which plan of a list is meant; None: the best.
    """
    from ...api.asked import Asked
    from ...files.plans import named_plan, problem_of_plan

    if len(files) > 2:
        raise InvalidInputError(f"give a problem and a plan, or a plan alone; got {' '.join(files)}")
    if len(files) == 2:
        options = replace(options, question=replace(options.question, problem=files[0]))
    trust(options.question.problem or "")
    named, question = named_plan(files[-1], number), options.question
    problem, notes = problem_of_plan(named, question, remembered=options.rules is None)
    change = options.change or (lambda problem: problem)
    return Asked(problem=change(problem), question=question, notes=(*named.notes, *notes)), named


def asking(command: Callable[..., Any], *, of_many: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a command whose first parameter `asked` becomes those of a question, and of rules.

    Where its parameter `instances` is given, `of_many` answers in its place, which gets the `ProblemOptions`.

    A second parameter `plan` makes the arguments one list, [PROBLEM] PLAN, of which it gets the plan; the
    option --plan chooses one of several. A command that plays plans has a parameter `task_slots`. In the
    place of a parameter `solving` stand those of `SolvingOptions`.
    """
    shared, own = question_parameters(), _parameters(command)
    own.pop("asked")
    argument, *others = shared.values()
    takes_plan = own.pop("plan", None) is not None
    if takes_plan:
        argument = inspect.Parameter("files", argument.kind, annotation=FilesArgument)
        number = inspect.Parameter("number", argument.kind, default=None, annotation=NumberOption)
        own = {"number": number, **own}
    plays = own.pop("task_slots", None) is not None
    solving = _parameters(SolvingOptions) if "solving" in own else {}

    @wraps(command)
    def asked(**given: Any) -> Any:
        files, number = given.pop("files", []), given.pop("number", None)
        rules = given.pop("rules")
        options = ProblemOptions(question=take_question(given), rules=rules)
        if solving:
            given["solving"] = SolvingOptions(**{name: given.pop(name) for name in solving})
        if of_many is not None and given["instances"] is not None:
            return of_many(options, **given)
        answer, plan = (
            ask_plan(files, options, number) if takes_plan else (_for_backends(ask(options), given), None)
        )
        if plays:
            given["task_slots"] = answer.task_slots
        elif answer.task_slots is not None:
            raise InvalidInputError("--task-slots is about a workload: give --workload, or use simulate")
        found = command(answer, **given) if plan is None else command(answer, plan, **given)
        return replace(found, notes=(*answer.notes, *found.notes)) if answer.notes else found

    parameters = [argument, *others]
    for name, parameter in own.items():
        parameters += solving.values() if name == "solving" else [parameter]
    takes(asked, (parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters))
    return asked


def check_writable(path: Path | None) -> None:
    """Refuse a place for a result before the work is done, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        reason = "may not be written to" if path.parent.is_dir() else "does not exist"
        raise InvalidInputError(f"cannot write {path}: the folder {path.parent} {reason}")


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    # Commands name what they get in the place of arguments, and do not load it: no option is of this type.
    hints = get_type_hints(
        function, localns=dict.fromkeys(("Asked", "NamedPlan", "Question"), object), include_extras=True
    )
    parameters = inspect.signature(function).parameters
    return {name: p.replace(annotation=hints[name]) for name, p in parameters.items()}
