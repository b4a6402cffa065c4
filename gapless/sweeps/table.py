"""The table of a sweep: one row for each task, as a CSV file and as a Parquet file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path

from ..formulations.errors import InvalidInputError
from ..formulations.files import save
from ..solvers.result import figures, relative_gap
from ..view.text import lines_csv
from .answers import TaskAnswer
from .tasks import SweepTask

COLUMNS = (
    *("task", "model", "platform", "devices", "available", "batch", "price", "objective", "limits"),
    *("backend", "backend_version", "status", "stop", "term", "value", "bound", "gap", "per_second"),
    *("period_us", "latency_us", "energy_nj", "peak_bytes", "runtime_s", "startup_s", "total_s"),
    *("layers", "units", "estimated", "plan", "plan_id", "plan_file", "fingerprint", "worker", "attempts"),
    *("error", "plan_source", "bound_source", "plan_class", "start_s"),
)
"""What tables have of a row, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow(TaskAnswer):
    """One task and its answer; the columns of the table.

    Attributes
    ----------
    task
        Its number in the sweep, from 1.
    model, platform, devices
        What is planned on what; numbers of devices by type, or of units, where the sweep names them.
    available
        How many devices, or units of a board, a plan may use.
    batch
        Inferences that pass the devices of a cluster together.
    price
        Of the platform, or of its devices together; null: not given.
    objective, limits
        What is asked.
    backend, backend_version
        Who planned.
    status, stop
        What is known of the plan, and why the backend stopped; "failed": there is no answer.
    term, value, bound, gap
        First term of the objective: of the plan, proved for all plans of `plan_class`, and (value - bound) /
        value.
    per_second
        Inferences a second; null where that means nothing.
    period_us, latency_us, energy_nj, peak_bytes
        Of the plan, where the formulation has them.
    runtime_s, startup_s, total_s
        Seconds of the search, before it, and of the whole task.
    layers, units
        Of the problem.
    estimated
        Whether the costs are estimates.
    plan, plan_id, plan_file
        The plan in words, its digest, and its file if plans are kept.
    fingerprint
        Of the problem.
    worker
        Host and process that answered.
    attempts
        How often the task was tried.
    error
        Why there is no answer.
    plan_source, bound_source
        Where the plan and the bound come from (`Source`); None without one.
    plan_class
        Which plans status and bound are about (`Problem.plan_class`); empty without an answer.
    start_s
        Seconds of the search that making the start took.
    """

    task: int
    model: str
    devices: str
    available: int
    batch: int
    price: float | None
    limits: str
    gap: float | None
    period_us: int | None
    latency_us: int | None
    energy_nj: int | None
    peak_bytes: int | None

    @property
    def columns(self) -> dict[str, str | int | float | None]:
        """What the table has of it, by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return bool(self.error)


def row_of(
    number: int, task: SweepTask, answer: TaskAnswer, prices: dict[str, float], plan_file: str = ""
) -> SweepRow:
    """Return the row of a task.

    `number`: of the task in the sweep, from 1; `prices`: of platforms by name, for tasks without a price of
    their own; `plan_file`: where its plan is kept, or empty.
    """
    platform = task.base.board or answer.platform or task.base.asked.platform or ""
    wanted = task.base.asked.limits.max_units
    own = {
        "platform": platform,
        "objective": answer.objective or task.objective,
        "backend": answer.backend or task.solving.backend,
        "status": answer.status or "failed",
        "plan_file": plan_file,
    }
    terms = {name: answer.score.get(name) for name in ("period_us", "latency_us", "energy_nj", "peak_bytes")}
    return SweepRow(
        **figures(answer, TaskAnswer) | own | terms,
        task=number,
        model=task.base.model or ", ".join(answer.networks) or (task.base.asked.problem or ""),
        devices=task.base.devices,
        available=min(answer.units, wanted) if wanted else answer.units,
        batch=task.base.asked.batch or 1,
        price=prices.get(platform) if task.base.price is None else task.base.price,
        limits=task.limits,
        gap=relative_gap(answer.value, answer.bound),
    )


def csv_text(rows: Sequence[SweepRow]) -> str:
    """Return rows as CSV with a header; what is not known is empty."""
    return lines_csv([COLUMNS, *(list(row.columns.values()) for row in rows)])


def save_csv(rows: Sequence[SweepRow], path: str | Path) -> None:
    """Write rows as a CSV file; it is whole or not there."""
    save(csv_text(rows), path)


def require_parquet() -> None:
    """Refuse to go on where no Parquet file can be written."""
    if find_spec("pyarrow") is None:
        raise InvalidInputError(
            "Parquet files need pyarrow, which is not installed; install it with: "
            "pip install 'gapless[parquet]'"
        )


def save_parquet(rows: Sequence[SweepRow], path: str | Path) -> None:
    """Write rows as a Parquet file with typed columns; it is whole or not there."""
    require_parquet()
    import pyarrow
    from pyarrow import parquet

    kinds = {"int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}
    types = {
        each.name: kinds.get(str(each.type).split(" ")[0], pyarrow.string()) for each in fields(SweepRow)
    }
    schema = pyarrow.schema([(name, types[name]) for name in COLUMNS])
    table = pyarrow.Table.from_pylist([row.columns for row in rows], schema=schema)
    target = Path(path)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".sweep-") as folder:
            part = os.path.join(folder, target.name)
            parquet.write_table(table, part)
            os.replace(part, target)
    except OSError as error:
        raise InvalidInputError(f"cannot write {target}: {error.strerror or error}") from error
