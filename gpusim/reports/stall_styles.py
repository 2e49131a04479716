"""How the reasons of a warp's cycles are drawn: a letter, a terminal's style and a colour each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StallStyle:
    """A name of `stalls.STALLS`, and how it is drawn."""

    letter: str
    style: str
    colour: str


# Okabe and Ito's colours for the most important reasons, lighter and darker ones for the rest.
STALL_STYLES = {
    "selected": StallStyle("#", "bold green", "#009e73"),
    "not_selected": StallStyle("n", "dim green", "#b0f0a0"),
    "wait": StallStyle("-", "dim", "#c8c8c8"),
    "short_scoreboard": StallStyle("s", "cyan", "#56b4e9"),
    "long_scoreboard": StallStyle("L", "blue", "#0072b2"),
    "mio_throttle": StallStyle("m", "yellow", "#e69f00"),
    "lg_throttle": StallStyle("g", "bold yellow", "#d55e00"),
    "math_pipe_throttle": StallStyle("p", "magenta", "#cc79a7"),
    "barrier": StallStyle("B", "red", "#7d3f63"),
}
