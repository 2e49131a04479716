"""Integer and interval arithmetic of predictions."""
