"""The glossary: terms with their meaning, and the document that defines them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

# The documents of NVIDIA among the sources.
DOCUMENTS = {
    "CUDA": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
    "CUDA C++ Programming Guide": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
    "CUDA Best Practices Guide": "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/",
    "CUDA C++ Best Practices Guide": "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/",
    "Nsight Compute": "https://docs.nvidia.com/nsight-compute/ProfilingGuide/",
    "PTX ISA": "https://docs.nvidia.com/cuda/parallel-thread-execution/",
    "SASS": "https://docs.nvidia.com/cuda/cuda-binary-utilities/",
    "compute-sanitizer": "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/",
}


@dataclass(frozen=True)
class Word:
    """Terms of one meaning, as in the glossary; `source` is the document that defines them."""

    text: str
    meaning: str
    source: str

    @property
    def terms(self) -> list[str]:
        """The terms, without marks and without remarks in brackets."""
        return [term.strip(" `") for term in re.sub(r"\([^)]*\)", "", self.text).split(",")]

    @property
    def url(self) -> str:
        """The address of the document, "" where it has none here."""
        return DOCUMENTS.get(self.source.partition(",")[0], "")


@cache
def sections() -> dict[str, tuple[Word, ...]]:
    """Return the words of each section, by its title."""
    text = resources.files("gpusim.reports").joinpath("words.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)["section"]
    return {one["title"]: tuple(Word(*row) for row in one["terms"]) for one in found}
