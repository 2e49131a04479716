"""Results in a notebook: HTML, pictures, text, DataFrames, and the page in a frame.

IPython and pandas are never needed to import this, pictures need Matplotlib.
"""
