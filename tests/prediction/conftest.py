"""What these tests play is played by both evaluators, where the compiled one is installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from prediction.evaluators import both_play

from gpusim.prediction.clock import simulation


@pytest.fixture(autouse=True)
def _both(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if find_spec("wasmtime") and "one_evaluator" not in request.fixturenames:
        monkeypatch.setattr(simulation, "is_played", both_play)


@pytest.fixture
def one_evaluator() -> None:
    """Leave it to the program which one plays."""
