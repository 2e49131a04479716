"""The clock: cycle-level simulation of an SM's warp streams, with stall reasons."""
