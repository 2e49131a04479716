"""Reuse distances and footprints of addresses, without a device."""
