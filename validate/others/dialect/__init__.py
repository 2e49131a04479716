"""The kernels of this folder's `.cu` files in gpusim's dialect, as far as it has the words."""
