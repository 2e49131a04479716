"""The texts that the kernels were published in, in the order of the list of kernels."""

from gpusim.catalogue import Origin

NVBENCH_NOTES = Origin(
    "Reduction: five kernels measured with NvBench",
    "R100001",
    "Notes to the book Programming Massively Parallel Processors, with bandwidths of several GPUs.",
    "https://github.com/R100001/Programming-Massively-Parallel-Processors",
    place=1,
)
PATTERNS = Origin(
    "Parallel Patterns: a reduction in five steps",
    about="Notes that trace warps through the iterations, thread by thread.",
    place=2,
)
COARSENING_NOTES = Origin(
    "Course notes on reduction and scan",
    about="Thread coarsening, and scans of one block after Kogge and Stone.",
    place=3,
)
OPERATOR_NOTES = Origin(
    "Notes on reduce operators, grid-stride, on an A100",
    about="Notes in Chinese on loads of four elements and on reductions by warp shuffles.",
    place=4,
)
LECTURE = Origin(
    "Lecture 29, Optimising Reduction Kernels",
    "Soumyajit Dey, IIT Kharagpur",
    "Transcript of a lecture of the course GPU Architectures and Programming, measured on a K40m.",
    place=5,
)
PROGRAMMING_GUIDE = Origin(
    "CUDA C++ Programming Guide",
    "NVIDIA",
    "Its warp reduce functions, clusters and bulk copies, each in a whole reduction.",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide",
    place=6,
)
LOOK_BACK = Origin(
    "Single-pass Parallel Prefix Scan with Decoupled Look-back",
    about="A report by Duane Merrill and Michael Garland on the scan of CUB.",
    url="https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan-decoupled-look-back",
    place=7,
)
