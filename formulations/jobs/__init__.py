"""What is served once: requests in chunks on any units in any order (Band), or the tasks of one request.

Source: Band (papers: Band), section 4.3; coordination, section 5. Of tasks: `tasks.py`.
"""

KINDS = {"jobs": "jobs", "task_graph": "tasks"}
"""Its data, `Jobs` or `TaskGraph`, stand under these keys in problem files."""


def load(kind: str) -> object:
    """Return the `Formulation` of a kind."""
    if kind == "jobs":
        from .formulation import FORMULATION

        return FORMULATION
    from .task_formulation import FORMULATION as TASKS

    return TASKS
