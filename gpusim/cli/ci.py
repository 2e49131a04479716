"""`gpusim ci`: a project's launches checked against their limits and a baseline."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli import output
from gpusim.cli.findings_formats import chosen_format, print_diagnostics
from gpusim.cli.options import Command, Option, document_of, options, print_document, print_lines
from gpusim.cli.progress import Bar
from gpusim.cli.project import EXAMPLE, FILE, LAUNCH_EXAMPLE, NamedLaunch, Project, found_project
from gpusim.cli.references import Reference
from gpusim.errors import GpusimError, InputError
from gpusim.host import files

if TYPE_CHECKING:
    from gpusim.limits.baseline import Recorded
    from gpusim.limits.measures import Subject
    from gpusim.prediction.records import Prediction
    from gpusim.reports.limits import JudgedLaunch
    from gpusim.tracing.records import Trace

BEYOND = 1
OUTPUTS = (".json", ".sarif", ".md")
SUMMARY = "GITHUB_STEP_SUMMARY"
# Every launch is checked, and has no error, where nothing else is said.
COMMON = {"errors": 0.0}
MOST_LISTED = 10


def ci(chosen: Namespace) -> int:
    """Check the launches in pyproject.toml against their limits.

    Each launch of [[tool.gpusim.launch]] is checked, traced and predicted as far as its limits
    need it: counters, predicted time, findings, and growth above a stored baseline. A launch
    without limits is checked for errors alone.

    The exit code is 1 where a limit is exceeded, else 0.
    """
    kind = chosen_format(chosen)
    path = _output(chosen.out)
    project = _project()
    launches = [project.launch(name) for name in chosen.launches] or list(project.launches)
    if not launches:
        raise InputError(f"{project.path} has no launch; {HINT}")
    if chosen.update_baseline:
        return _update(project, launches)
    judged = _judged(project, launches)
    diagnostics = [found for one in judged for found in one.diagnostics()]
    if path is not None:
        _write(path, judged)
    _summarise(judged)
    if kind == "json":
        from gpusim.reports.limits import limits_document

        print_document("ci", limits_document(judged))
    elif kind == "text":
        from gpusim.reports.limits import limits_report

        print_lines(lambda width: limits_report(judged, width))
    else:
        print_diagnostics(diagnostics, kind)
    return 0 if all(one.verdict.is_within for one in judged) else BEYOND


HINT = f"write for example\n{LAUNCH_EXAMPLE}"

COMMAND = Command(
    "ci",
    ci,
    options(
        Option("launches", "names of launches (all)", "LAUNCH", arity="*"),
        Option("--update-baseline", "write the baseline from this run's values"),
        Option("--out", "also write a file that ends in .json, .sarif or .md", "FILE"),
        "--format --json --sarif",
    ),
    (
        EXAMPLE,
        """examples:
  gpusim ci
  gpusim ci saxpy transpose --format github
  gpusim ci --update-baseline""",
    ),
)


def _project() -> Project:
    project = found_project()
    if project is None:
        raise InputError(f"there is no {FILE} with a table [tool.gpusim] here or above; {HINT}")
    return project


def _output(name: str | None) -> Path | None:
    if name is None:
        return None
    if not name.endswith(OUTPUTS):
        raise InputError(f"--out is a file that ends in {', '.join(OUTPUTS)}, not {name}")
    return Path(name)


def _judged(project: Project, launches: Sequence[NamedLaunch]) -> list[JudgedLaunch]:
    """Return launches checked against their limits; an error about one of them names it."""
    from gpusim.limits.measures import require_known

    require_known(list(project.table.limits), f"{project.path}, [tool.gpusim.limits]")
    for launch in launches:
        require_known(list(launch.table.limits), f"{project.path}, limits of {launch.name}")
    stored = _stored(project)
    if project.has_baseline and not os.path.lexists(project.baseline):
        raise InputError(
            f"{files.shown(project.baseline)}: there is no such baseline; write it with "
            "gpusim ci --update-baseline, and commit it"
        )
    with Bar(len(launches), "launches") as bar:
        bar.start()
        found = []
        for launch in launches:
            try:
                found.append(_judge(project, launch, stored.get(launch.name)))
            except GpusimError as error:
                raise InputError(f"launch {launch.name}: {error}") from None
            bar.advance(launch.name)
    if stored:
        _tell_unknown(project, launches, stored)
    return found


def _stored(project: Project) -> dict[str, Recorded]:
    """Return the baseline's launches by name, none where there is no baseline."""
    from gpusim.limits import baseline

    return baseline.read(project.baseline) if os.path.lexists(project.baseline) else {}


def _tell_unknown(
    project: Project, launches: Sequence[NamedLaunch], stored: dict[str, Recorded]
) -> None:
    """Print the launches missing from the baseline, and its entries without a launch."""
    new = [one.name for one in launches if one.name not in stored]
    gone = [name for name in stored if name not in project.names]
    for names, what in ((new, "not in the baseline"), (gone, "in the baseline, but no launch")):
        if names:
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            output.complain(f"{', '.join(names[:MOST_LISTED])}{more}: {what}")


def _judge(project: Project, launch: NamedLaunch, stored: Recorded | None) -> JudgedLaunch:
    from gpusim.limits.verdicts import Limits, judged
    from gpusim.reports.limits import JudgedLaunch

    options = options_of(launch)
    subject = subject_of(options)
    if stored is not None:
        _require_same(stored, subject, options)
    limits = Limits(
        own=launch.table.limits,
        common=COMMON | dict(project.table.limits),
        lifted=project.table.lifted - launch.table.limits.keys() | launch.table.lifted,
        baseline=None if stored is None else stored.measures,
        growth_percent=project.growth_percent,
    )
    verdict = judged(subject, limits)
    traced, checked = vars(subject).get("trace"), vars(subject).get("check")
    source = getattr(traced or checked, "source_file", "") or Reference.of(launch.kernel).file
    made_by = _generator(subject)
    device = options.device
    return JudgedLaunch(launch.name, launch.kernel, device, made_by, source, verdict, checked)


def _generator(subject: Subject) -> str:
    """Return the code generator of the launch's counters, else of its prediction or check."""
    made = vars(subject)
    if "trace" in made:
        return subject.trace.generator
    if "timed" in made:
        return subject.timed[1].prepared.program.generator
    return subject.check.generator if "check" in made else ""


def _require_same(stored: Recorded, subject: Subject, options: Namespace) -> None:
    """Raise InputError where a baseline is of other machine code, or of another GPU."""
    now = subject.trace.generator
    pairs = ((stored.generator.split()[0], now.split()[0]), (stored.device, options.device))
    for before, after in pairs:
        if before != after:
            raise InputError(
                f"its baseline is of {before}, this run of {after}: their measures are not "
                "compared; write it again with gpusim ci --update-baseline"
            )
    if stored.generator != now:
        output.complain(f"the baseline is of {stored.generator}, this run of {now}")


def _update(project: Project, launches: Sequence[NamedLaunch]) -> int:
    """Write the baseline; launches that are not named keep their entries."""
    from gpusim.limits import baseline
    from gpusim.limits.measures import recorded

    held = _stored(project)
    with Bar(len(launches), "launches") as bar:
        bar.start()
        for launch in launches:
            options = options_of(launch)
            subject = subject_of(options)
            try:
                measures = recorded(subject)
            except GpusimError as error:
                raise InputError(f"launch {launch.name}: {error}") from None
            made_by = subject.trace.generator
            held[launch.name] = baseline.Recorded(made_by, options.device, measures)
            bar.advance(launch.name)
    baseline.write(project.baseline, {name: held[name] for name in project.names if name in held})
    count = f"{len(launches)} launch{'es' if len(launches) > 1 else ''}"
    output.write(f"{project.baseline}: {count} recorded\n")
    return 0


def options_of(launch: NamedLaunch) -> Namespace:
    """Return the options of a launch for trace, predict and check, all others at their defaults."""
    from gpusim.cli import check, predict, trace

    defaults: dict[str, Any] = {}
    for command in (trace.COMMAND, check.COMMAND, predict.COMMAND):
        defaults |= command.defaults
    options = dict(launch.options)
    return Namespace(
        **{**defaults, **options, "kernel": launch.kernel, "of_project": frozenset(options)}
    )


def subject_of(options: Namespace) -> Subject:
    """Return a launch that is traced, predicted and checked as the commands do it."""
    from gpusim.cli.check import checked
    from gpusim.cli.timing import device_of
    from gpusim.limits.measures import Subject

    options.cc = str(device_of(options.device, None).cc)
    return Subject(
        trace=partial(_trace, options),
        prediction=partial(_prediction, options),
        check=partial(checked, options),
    )


def _trace(options: Namespace) -> Trace:
    from gpusim.cli.trace import traced

    return traced(options)[0]


def _prediction(options: Namespace) -> tuple[float, Prediction]:
    from gpusim.cli.predict import forecast, job_of
    from gpusim.cli.timing import device_of

    made = forecast(options, job_of(options), device_of(options.device, None))
    return made.time_us, made.first


def _write(path: Path, judged: Sequence[JudgedLaunch]) -> None:
    from gpusim.reports.limits import limits_document, limits_markdown
    from gpusim.reports.sarif import sarif

    if path.suffix == ".md":
        files.write_whole(path, limits_markdown(judged))
        return
    found = (diagnostic for one in judged for diagnostic in one.diagnostics())
    as_json = document_of("ci", limits_document(judged))
    document = sarif(found) if path.suffix == ".sarif" else as_json
    files.write_whole(path, json.dumps(document, indent=2) + "\n")


def _summarise(judged: Sequence[JudgedLaunch]) -> None:
    """Add a table to the summary of a job on GitHub."""
    name = os.environ.get(SUMMARY)
    if not name:
        return
    from gpusim.reports.limits import limits_markdown

    with files.refusing(Path(name)), Path(name).open("a", encoding="utf-8") as file:
        file.write(limits_markdown(judged))
