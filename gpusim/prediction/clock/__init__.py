"""The clock: how long warp streams take on a device, cycle by cycle, and for which reasons."""
