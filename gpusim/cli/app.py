"""The `gpusim` command: its subcommands, and the one place where errors become exit codes.

Exit codes: 0 for success, 1 for a wrong result, 2 for input that cannot be used, 130 where
the user interrupts. What a subcommand needs it imports when it runs: an answer should
come in half a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gpusim import __version__
from gpusim.cli import listing, run, trace
from gpusim.cli.options import verbatim
from gpusim.errors import GpusimError

INPUT_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

EXAMPLES = """Examples:
  gpusim list                              the kernels, and what each teaches
  gpusim run reduce3 -n 2^20 --block 256   run a reduction, check it against NumPy
  gpusim trace reduce2 --block 128         where warps diverge and banks conflict
"""

app = typer.Typer(
    name="gpusim",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("list", epilog=verbatim(listing.EXAMPLES))(listing.list_kernels)
app.command("run", epilog=verbatim(run.EXAMPLES))(run.run)
app.command("trace", epilog=verbatim(trace.ARGUMENTS, trace.EXAMPLES))(trace.trace)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpusim {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=verbatim(EXAMPLES))
def gpusim(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  its callback answers
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What a GPU kernel does to the machine, line by line and warp by warp, without a GPU."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; a user's mistake is a message on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=given, prog_name="gpusim", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _fail(_usage_message(error))
    except GpusimError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("not enough memory for arrays of this size; try a smaller n")
    except BrokenPipeError:
        return _reader_left()
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def entry_point() -> None:
    """Run the command and leave with its exit code."""
    sys.exit(main())


def _fail(message: str) -> int:
    print(f"gpusim: {message}", file=sys.stderr)
    return INPUT_ERROR


def _usage_message(error: typer.TyperException) -> str:
    """Return what is wrong with the options, and which help to ask for."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "gpusim"
    text = error.format_message()
    return f"{text[:1].lower()}{text[1:].rstrip('.')}; see {command} --help"


def _reader_left() -> int:
    """Let the interpreter flush stdout into nothing: `gpusim list | head` ends quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
