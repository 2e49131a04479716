"""The version of gpusim."""

__version__ = "0.2.0"

# Of JSON documents: one more where a member is renamed, removed, or means something else.
SCHEMA_VERSION = 1
