"""The version of gpusim."""

__version__ = "0.2.0"
