"""`python -m validate`: the same as `gpusim validate`."""

from __future__ import annotations

import sys

from .commands import main

sys.exit(main(sys.argv[1:]))
