"""The host process: files, caches on disk, journals, worker processes."""
