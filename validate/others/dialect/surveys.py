"""The kernels of `surveys.cu` in the dialect."""

from __future__ import annotations
