"""`python -m validate`: the same as `gpusim validate`."""

from __future__ import annotations

import sys

from gpusim.cli.app import main

sys.exit(main(["validate", *sys.argv[1:]]))
