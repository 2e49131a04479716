"""Measured over predicted times, and the prediction intervals that follow from them.

    python -m validate.residuals derive     writes quantiles.csv and factors.csv of uncertainty
    python -m validate.residuals show       prints the tables of docs/accuracy.md
    python -m validate.residuals unknowns   goes on with unknowns.csv

`others.csv` has launches of sets of kernels that were written without regard to the model, each
set predicted before it was measured: the predictions are those of the model of that time.
`catalogue.csv` has a random sample of the catalogue's launches, `described.csv` launches on GPUs
that are known by their description alone.
"""
