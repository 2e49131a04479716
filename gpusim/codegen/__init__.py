"""One door to two code generators."""
