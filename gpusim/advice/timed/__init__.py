"""Rules over predictions: stalls, the shape of a launch, its limits."""
