"""The kernels of `backends.cu` in the dialect."""

from __future__ import annotations
