"""`python -m gpusim` is `gpusim`."""

from gpusim.cli.app import entry_point

if __name__ == "__main__":
    entry_point()
