"""Validation on hardware: kernels measured on a real GPU, beside gpusim's predictions.

GPU and compiler libraries are imported on use; without either, the measurements that come with the
package serve. gpusim never imports this package.
"""
