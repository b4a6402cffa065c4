"""Options that several commands share, and what they mean: a problem as the user asks for it.

The options of a problem are the fields of a question (`gapless.question`), which the command line makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...formulations.errors import InvalidInputError
from ...formulations.plugins import trust
from ...formulations.validation import shown
from ...question.fields import Only, said
from ...question.question import Question, asked_fields
from ...question.subjects import OUTPUT, RULES
from ...question.values import Names, Place, count_form, file_form
from ..base.answer import takes
from ..base.declared import annotated
from ..base.general_options import argument

if TYPE_CHECKING:
    from ...api.asked import Asked
    from ...files.plans import NamedPlan
    from ...formulations.problem import Problem

FilesArgument = Annotated[
    list[str],
    argument(
        "[PROBLEM] PLAN",
        "A plan or a list of plans, as written by `gapless plan --out`, a deployment, or a folder of "
        "`gapless tune`; before it the problem, if the plan does not say which one it is for, or is to be "
        "looked at for another one.",
    ),
]
NumberOption = Annotated[
    int | None,
    said("Which plan of a list, from 1; otherwise the first, the best.", count_form(), called="--plan"),
]
RulesOption = Annotated[Path | None, RULES]
result_option = partial(said, form=file_form("PATH", Names.RESULT), heading=OUTPUT)
"""Declares an option that names a file to be written; whether it can be is looked at before the work."""

OutOption = Annotated[Path | None, result_option("Also write it to this file.")]


def _picture(place: Place, text: str) -> Path:
    """Return where a picture goes; what cannot be drawn is refused before the work is done."""
    from ...view.plots.draw import picture_endings

    endings, path = picture_endings(), Path(text)
    if path.suffix.lower() not in endings:
        raise InvalidInputError(f"{place} is {shown(text)}, must end with one of {', '.join(endings)}")
    return path


PictureOption = Annotated[
    Path | None,
    result_option(
        "Also draw it into this file (.png, .svg).",
        form=replace(file_form("PATH", Names.RESULT), read=_picture),
    ),
]


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

    compared = given.get("compared")
    if asked.once is not None and compared is not None and compared.layer_orders is not None:
        return in_once(asked.once, "--layer-orders compares plans of that kind")
    names = (compared.backend, compared.backends) if compared is not None else (given.get("backend"),)
    said = [name.strip() for each in names for name in (each or "").split(",")]
    return for_backends(asked, [name for name in said if name])


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


ASKED_OF_FILES = tuple(each.name for each in asked_fields() if not each.argument)
_UNKNOWN = dict.fromkeys(("Asked", "NamedPlan"), object)
"""What commands get in the place of arguments, and do not load: no option is of these types."""


def asking(command: Callable[..., Any], *, of_many: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a command whose first parameter `asked` becomes those of a question, and of rules.

    Where its parameter `compared` names instances, `of_many` answers in its place, which gets the
    `ProblemOptions`.

    A second parameter `plan` makes the arguments one list, [PROBLEM] PLAN, of which it gets the plan; the
    option --plan chooses one of several. A command that plays plans has a parameter `task_slots`.
    """
    own = annotated(command, _UNKNOWN)
    own.pop("asked")
    takes_plan = own.pop("plan", None) is not None
    plays = own.pop("task_slots", None) is not None

    @wraps(command)
    def asked(
        *,
        question: Question,
        rules: Path | None,
        files: Sequence[str] = (),
        number: int | None = None,
        **given: Any,
    ) -> Any:
        options = ProblemOptions(question=question, rules=rules)
        if of_many is not None and given["compared"].instances is not None:
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

    shared: dict[str, Any] = {"question": Question, "rules": RulesOption}
    if takes_plan:
        question = Annotated[Question, Only(ASKED_OF_FILES)]
        shared = {"files": FilesArgument, "question": question, "rules": RulesOption, "number": NumberOption}
    kind = inspect.Parameter.KEYWORD_ONLY
    needed = {"files": inspect.Parameter.empty}
    before = [
        inspect.Parameter(name, kind, default=needed.get(name), annotation=each)
        for name, each in shared.items()
    ]
    takes(asked, (*before, *(each.replace(kind=kind) for each in own.values())))
    return asked
