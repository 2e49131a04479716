"""The texts that the kernels were published in."""

from gpusim.catalogue import Origin

LECTURE = Origin(
    "Lecture 29, Optimising Reduction Kernels",
    "Soumyajit Dey, IIT Kharagpur",
    "004_699ad9b2b8ba4118.txt",
)
NVBENCH_NOTES = Origin(
    "Reduction: five kernels measured with NvBench", "R100001", "000_0e69a3c8a2652727.txt"
)
PATTERNS = Origin("Parallel Patterns: a reduction in five steps", file="001_759a0d9483e3730a.txt")
COARSENING_NOTES = Origin("Course notes on reduction and scan", file="002_579b895454b4631c.txt")
OPERATOR_NOTES = Origin(
    "Notes on reduce operators, grid-stride, on an A100", file="003_ef70df325764967c.txt"
)
