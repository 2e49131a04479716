"""Measured over predicted times, and the prediction intervals that follow from them.

    gpusim validate certainty --write         writes quantiles, factors and certainty.csv of
                                              `gpusim.prediction.uncertainty`
    python -m validate.residuals unknowns     goes on with unknowns.csv
    python -m validate.residuals generations  goes on with generations.csv

`others.csv` has kernels of `validate/others/`, as predicted today; launches of `held.csv` were
predicted before they were measured, and tell by how much intervals of new kernels are wider.
`catalogue.csv` has a random sample of the catalogue's launches, `described.csv` launches on GPUs
that are known by their description alone.
"""
