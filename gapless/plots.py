"""Pictures with matplotlib, for notebooks and papers: traces, busy times, tables, answers, tuning.

Each function takes gapless values and an optional `Axes`, and returns the `Axes`:

>>> import gapless
>>> from gapless.plots import plot_layer_times
>>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
>>> axes = plot_layer_times(problem, plan=gapless.plan(problem).plan)  # doctest: +SKIP

They need `pip install 'gapless[plots]'`; nothing else in gapless does. `import gapless` does not load them.
"""

from __future__ import annotations

from .view.plots.pictures import (
    plot_answers,
    plot_busy,
    plot_candidates,
    plot_comparison,
    plot_courses,
    plot_deadlines,
    plot_front,
    plot_layer_times,
    plot_predicted,
    plot_profile,
    plot_record,
    plot_slowdown,
    plot_solve_times,
    plot_task_stream,
    plot_trace,
)

__all__ = [
    "plot_answers",
    "plot_busy",
    "plot_candidates",
    "plot_comparison",
    "plot_courses",
    "plot_deadlines",
    "plot_front",
    "plot_layer_times",
    "plot_predicted",
    "plot_profile",
    "plot_record",
    "plot_slowdown",
    "plot_solve_times",
    "plot_task_stream",
    "plot_trace",
]
