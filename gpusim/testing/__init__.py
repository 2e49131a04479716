"""Assertions about kernels, and the pytest plugin."""

from gpusim.testing.assertions import (
    assert_at_most,
    assert_correct,
    assert_no_bank_conflicts,
    assert_no_divergence,
    assert_none_wrong,
    checks_every_launch,
    run_checked,
)

__all__ = [
    "assert_at_most",
    "assert_correct",
    "assert_no_bank_conflicts",
    "assert_no_divergence",
    "assert_none_wrong",
    "checks_every_launch",
    "run_checked",
]
