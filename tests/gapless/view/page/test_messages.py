"""Messages on a report page: each is compared with the message that was predicted, and with no other."""

from __future__ import annotations

from dataclasses import replace

from gapless.executor.measurement import LinkTimes, Spread
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.operation import operation_of
from gapless.view.page.contents import messages
from gapless.view.page.subject import Subject
from tests.formulations.cooperation.test_judge import plan, two_convolutions
from tests.gapless.view.page.markup import column


def test_what_goes_there_and_back_in_a_group_is_no_prediction_of_either() -> None:
    problem = two_convolutions()
    deployment = operation_of(problem).deploy(problem, plan((0, 1, "a+b"), (1, 2, "c")))
    device, took = SimulatedRunner(problem), Spread.of([2000.0])
    links = tuple(
        LinkTimes(stream="net", source=source, target=target, size=100, time_us=took, queued_us=took)
        for source, target in ("ba", "ab", "bc")
    )
    found = messages(
        Subject(
            title="groups",
            problem=problem,
            deployment=deployment,
            predicted=device.trace(deployment, requests=1),
            measurement=replace(device.measure(deployment, Budget(requests=1)), links=links),
        )
    )
    assert column(found, "predicted") == ["-", "-", "1.00 ms"]
