"""Records that intervals come from: `measure FILE`, `predict` and `unknowns` go on with them."""

from __future__ import annotations

import sys
from pathlib import Path

from . import held, recording, unknowns

if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "measure":
        held.measure(Path(given[0]))
    else:
        {
            "predict": held.predict_all,
            "unknowns": unknowns.record,
            "generations": recording.record_generations,
        }[command]()
