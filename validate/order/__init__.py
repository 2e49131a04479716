"""The order of three findings: kernels with three defects, and what leaving one out gains on a GPU.

    python -m validate.order.measure

builds `kernels.cu` with nvcc, runs it on the GPU that is there, and prints the times as JSON.
`gpusim predict` says the gains without a GPU.
"""
