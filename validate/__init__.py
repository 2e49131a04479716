"""The proof on hardware: kernels measured on a real GPU, beside what gpusim predicts of them.

What needs a GPU or a compiler imports it when it runs; without either, the measurements that
come with the package serve. gpusim never imports this package.
"""
