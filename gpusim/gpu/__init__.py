"""A GPU in numbers: device files, occupancy, banks and sectors."""
