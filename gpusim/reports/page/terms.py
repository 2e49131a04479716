"""Explanations of the names on a page: counters, stall reasons, findings and terms."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gpusim.advice import registry
from gpusim.checking.rules import RULES
from gpusim.tracing.counters import COUNTERS

# Labels of the page, and the term of the glossary that each stands for.
LABELS = {
    "threads on": "average predicated-on threads per warp",
    "divergent": "divergent branch",
    "wavefronts": "wavefront",
    "excessive": "excessive wavefronts",
    "excessive wavefronts": "excessive wavefronts",
    "sectors": "sector",
    "sectors loaded": "sector",
    "sectors stored": "sector",
    "sectors read": "sector",
    "most cycles": "stall reason",
    "reason": "stall reason",
    "limiter": "limiter",
    "useful bandwidth": "effective bandwidth",
    "waves": "wave",
    "L1 hit rate": "hit",
    "L2 hit rate": "hit",
    "hit rate": "hit",
    "hit rate of loads": "hit",
    "predicted duration": "duration",
    "time": "duration",
    "kind": "kind",
    "load requests": "request",
    "store requests": "request",
    "requests": "request",
    "compulsory bytes": "compulsory traffic",
    "again in the far partition": "L2 partition",
    "dirty bytes at the end": "dirty line",
    "of loads": "sector",
    "code, constants, parameters": "sector",
    "measured pairs in this order": "in order",
    "issue": "issue limit",
}


@cache
def explanations() -> dict[str, tuple[str, str]]:
    """Return a text and an address, which may be "", by the label that it explains."""
    words = dict(_words())
    words |= {label: words[term] for label, term in LABELS.items()}
    profiler = DOCUMENTS["Nsight Compute"]
    counters = {name: (spec.doc, profiler if spec.ncu else "") for name, spec in COUNTERS.items()}
    found = counters | {name.replace("_", " "): text for name, text in counters.items()}
    found |= {kind: (registry.title(kind), "") for kind in registry.rules(timed=True)}
    found |= {name: (rule.title, "") for name, rule in RULES.items()}
    return found | words


def _words() -> Iterator[tuple[str, tuple[str, str]]]:
    for section in sections().values():
        for word in section:
            meaning = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", word.meaning).replace("`", "")
            for term in word.terms:
                yield term, (f"{word.text.replace('`', '')}: {meaning}.", word.url)


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
