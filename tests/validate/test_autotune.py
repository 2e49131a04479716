"""Configurations of Triton kernels: predicted times beside measured ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from validate.autotune.compare import compared, comparisons

PAGE = Path(__file__).parents[2] / "docs" / "triton.md"


def test_a_comparison_by_hand() -> None:
    """Of the times 10, 20 and 20.2 two pairs are in order; the third differs by 1 % alone."""
    rows = [
        {"us": [10.0, 11.0], "predicted_us": 9.0},
        {"us": [20.0, 20.0], "predicted_us": 22.0},
        {"us": [20.2, 20.2], "predicted_us": 20.2},
    ]
    found = compared("one", rows)
    assert found.error == pytest.approx((0.1 + 0.1 + 0) / 3)
    assert found.choice == 0
    assert found.tau == pytest.approx(1 / 3)
    assert found.clear_tau == 1


def test_the_page_has_the_comparison_of_the_measured_data() -> None:
    rows = [
        f"| `{one.kernel}` | {one.configurations} | {one.error:.1%} | {one.choice:.1%} | "
        f"{one.tau:.2f} | {one.clear_tau:.2f} |"
        for one in comparisons()
    ]
    text = PAGE.read_text().replace(" %", "%")
    assert [row for row in rows if row not in text] == []
