"""One slow test of each kind: `make test` runs them beside all fast ones, `make test-all` runs everything."""

from __future__ import annotations

_CHOSEN = {
    "the page everybody reads": ("docs/test_blocks.py", "test_every_block_of_a_page_runs[README.md]"),
    "a how-to page": ("docs/test_blocks.py", "test_every_block_of_a_page_runs[docs/how-to/export-a-plan.md]"),
    "a page of formulations": (
        "docs/test_blocks.py",
        "test_every_block_of_a_page_runs[docs/formulations/costs.md]",
    ),
    "a notebook": ("test_notebooks.py", "test_it_runs_and_explains_each_picture[01_first_plan]"),
    "CP-SAT": ("solvers/test_conformance.py", "TestEveryBackend::test_golden_instances[cpsat]"),
    "Z3": ("solvers/test_conformance.py", "TestEveryBackend::test_golden_instances[z3]"),
    "HiGHS": ("solvers/test_conformance.py", "TestEveryBackend::test_golden_instances[pulp]"),
    "CBC": ("solvers/test_conformance.py", "TestEveryBackend::test_the_objective_decides[pulp-cbc]"),
    "MNN": ("executor/engines/test_conformance.py", "TestEveryEngine::test_numbers[mnn]"),
    "ONNX Runtime": ("executor/engines/test_conformance.py", "TestEveryEngine::test_numbers[onnxruntime]"),
    "OpenVINO": ("executor/engines/test_conformance.py", "TestEveryEngine::test_receipts[openvino]"),
    "a profile": ("profiler/test_real.py", "test_a_profile_is_interrupted_and_resumed[onnxruntime]"),
    "a tune": ("gapless/api/test_competing.py", "test_each_chunk_has_its_engine_and_a_receipt_that_says_so"),
    "a tune that is interrupted": (
        "executor/tuning/test_tuner.py",
        "test_ctrl_c_gives_what_is_there_and_can_be_resumed[1]",
    ),
    "a run": ("gapless/cli/test_running.py", "test_a_plan_runs_and_leaves_a_measurement_and_a_trace"),
    "an export": ("executor/export/test_runner.py", "test_replicas_share_the_requests"),
    "a server": ("gapless/serving/test_server.py", "test_the_command_serves_until_a_signal_comes"),
    "a board": ("gapless/boards/test_on_board.py", "test_results_are_in_the_folder_here"),
    "a cluster": (
        "executor/cluster/test_pipeline.py",
        "test_all_requests_come_out_once_in_order_with_right_numbers",
    ),
    "a sweep": ("gapless/sweeps/test_run.py", "test_a_sweep_that_is_killed_goes_on_where_it_was"),
    "a hostile model": ("executor/graph/test_opening.py", "test_a_file_that_takes_for_ever_meets_its_limit"),
    "a real model": ("executor/test_ocr.py", "test_cut_at_every_tenth_legal_cut_the_numbers_stay[cls]"),
    "a page in a browser": (
        "gapless/view/page/test_browser.py",
        "test_pages_open_without_errors[steady]",
    ),
    "a report": ("gapless/view/page/test_timeline.py", "test_bubbles_are_those_of_the_trace[small]"),
}
"""What each one stands for, the file, and the test."""

REPRESENTATIVES = frozenset(f"tests/{file}::{test}" for file, test in _CHOSEN.values())

BUDGET_MINUTES = 6
"""How long `make test` may take on two quiet cores."""

MAKE_TEST = "not slow or representative"
"""Which tests `make test` chooses."""
