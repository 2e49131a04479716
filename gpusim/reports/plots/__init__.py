"""Pictures of results. Matplotlib, the extra `plot`, is imported when the first one is drawn."""
