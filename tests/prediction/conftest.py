"""Both evaluators of the clock for tests of the clock."""

from __future__ import annotations

import pytest
from prediction.evaluators import both_play

from gpusim.prediction.clock import simulation


@pytest.fixture
def both_evaluators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play every SM by both evaluators, with equal results."""
    monkeypatch.setattr(simulation, "is_played", both_play)
