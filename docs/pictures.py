"""Draw the pictures that pages show: `python docs/pictures.py` draws all, or those it names.

All but the diagram of the model are what a `gpusim` command draws with the lowering's code, so that
a reader can draw them too. A test holds the files to this list, to their size, and the quick ones
to what they say.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import diagram

from gpusim.cli.app import main as gpusim
from gpusim.codegen.generators import AUTO, LOWERING, VARIABLE

os.environ[VARIABLE] = LOWERING  # the code of the pages around them
FOLDER = Path(__file__).parent / "pictures"
MOST_BYTES = 200_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DIAGRAM = "model.svg"

COMMANDS = {
    "tree-reduce1.svg": "plot tree reduce1 -n 4096 --block 64",
    "tree-reduce2.svg": "plot tree reduce2 -n 4096 --block 64",
    "tree-reduce3.svg": "plot tree reduce3 -n 4096 --block 64",
    "divergence-reduce1.svg": "plot divergence reduce1 -n 4096 --block 128",
    "divergence-reduce3.svg": "plot divergence reduce3 -n 4096 --block 128",
    "banks-reduce2.svg": "plot banks reduce2 -n 4096 --block 128",
    "strides-reduce2.svg": "plot strides reduce2 -n 4096 --block 128",
    "timeline-reduce3.png": "plot timeline reduce3 -n 2^20 --block 128 --device h200",
    "gains.svg": "plot gains -n 2^24 --block 256 --device h200",
    "traffic.svg": "plot traffic -n 2^24 --block 256 --device h200",
    "bandwidth.svg": "plot bandwidth --block 256 --device h200",
}
PAGE = "page.png"  # as Chromium shows it
README_REPORT = "report reduce2 --block 128"
WORDS = "words"  # a text in the picture's file
NAMES = (*COMMANDS, DIAGRAM, PAGE)


def draw(name: str, folder: Path = FOLDER) -> Path:
    """Draw a picture into a folder and return its file."""
    path = folder / name
    if name == DIAGRAM:
        diagram.draw(path)
        return path
    if name == PAGE:
        _photograph(path)
        return path
    code = gpusim([*COMMANDS[name].split(), "--out", str(path)])
    if code:
        raise SystemExit(code)
    return path


def write_page(path: Path) -> None:
    """Write the page of the README's command, with nvcc's code as of the README's other outputs."""
    os.environ[VARIABLE] = AUTO
    try:
        code = gpusim([*README_REPORT.split(), "--out", str(path)])
    finally:
        os.environ[VARIABLE] = LOWERING
    if code:
        raise SystemExit(code)


def words_of(page: Path) -> str:
    """Return a digest of a page's texts without their numbers: of its names and sentences."""
    html = page.read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>|\d", " ", html, flags=re.DOTALL)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def _photograph(path: Path) -> None:
    """Write a picture of the page, as it opens, with the digest of the page's words."""
    from PIL import Image, PngImagePlugin  # Matplotlib's

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"{PAGE} needs {' or '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        write_page(page)
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1400,820"]
        subprocess.run(
            [browser, *flags, f"--screenshot={path}", page.as_uri()],
            check=True,
            capture_output=True,
        )
        words = PngImagePlugin.PngInfo()
        words.add_text(WORDS, words_of(page))
    image = Image.open(path).convert("RGB").quantize(64)
    image.save(path, optimize=True, pnginfo=words)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NAMES:
        draw(chosen)
