"""Many predictions: jobs, tables, ablations."""
