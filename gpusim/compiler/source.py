"""A kernel's source: read once, checked for syntax outside the dialect, with places for carets."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpusim.errors import KernelSourceError, SourceLocation

STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.While, ast.For, ast.Break,
    ast.Continue, ast.Return, ast.Expr, ast.Pass,
)  # fmt: skip
EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Subscript,
    ast.Attribute, ast.Name, ast.Constant, ast.Tuple,
)  # fmt: skip
OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift,
    ast.BitAnd, ast.BitOr, ast.BitXor, ast.UAdd, ast.USub, ast.Not, ast.Invert, ast.And, ast.Or,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
WHAT: dict[type[ast.AST], str] = {
    ast.Try: "try",
    ast.With: "with",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.FunctionDef: "a nested function",
    ast.ClassDef: "a class",
    ast.Lambda: "lambda",
    ast.ListComp: "a list comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.List: "a list",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.JoinedStr: "an f-string",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.Yield: "yield",
    ast.Slice: "a slice",
    ast.Starred: "*",
    ast.MatMult: "@",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.NamedExpr: ":=",
    ast.Match: "match",
}


@dataclass(frozen=True, eq=False)
class KernelSource:
    """A function's syntax tree and where it stands: `lines[0]` is line `first_line` of `file`."""

    name: str
    file: str
    first_line: int
    lines: tuple[str, ...]
    indent: int
    tree: ast.FunctionDef
    function: Callable[..., Any]

    def lookup(self, name: str) -> Any:
        """Return the value of a free name: the closure's, a global or a builtin; else KeyError."""
        code = getattr(self.function, "__code__", None)
        cells = getattr(self.function, "__closure__", None) or ()
        if code is not None and name in code.co_freevars:
            try:
                return cells[code.co_freevars.index(name)].cell_contents
            except ValueError:
                raise KeyError(name) from None
        scope = getattr(self.function, "__globals__", {})
        return scope[name] if name in scope else vars(builtins)[name]

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in order."""
        return [argument.arg for argument in self.tree.args.args]

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that the function assigns."""
        return frozenset(
            node.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    def line(self, node: ast.AST) -> int:
        """Return the line of the file at the start of a node."""
        return int(getattr(node, "lineno", 1)) + self.first_line - 1

    def location(self, node: ast.AST) -> SourceLocation:
        """Return where a node stands."""
        number = int(getattr(node, "lineno", 1))
        text = self.lines[number - 1] if number <= len(self.lines) else ""
        start = int(getattr(node, "col_offset", 0)) + self.indent
        end = int(getattr(node, "end_col_offset", start + 1) or start + 1) + self.indent
        if getattr(node, "end_lineno", number) != number:
            end = len(text)
        return SourceLocation(self.file, self.line(node), text, start, end)

    def error(self, message: str, node: ast.AST) -> KernelSourceError:
        """Return an error that marks a node in the user's own line."""
        return KernelSourceError(message, self.location(node))


def read_source(function: Callable[..., Any]) -> KernelSource:
    """Return a function's source; KernelSourceError for syntax outside the dialect."""
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelSourceError(
            f"the source of {getattr(function, '__name__', function)!r} cannot be read; "
            "define kernels in a file"
        ) from None
    # A comment may stand further to the left than the function that it is in.
    text = "".join("\n" if line.lstrip().startswith("#") else line for line in lines)
    try:
        tree = ast.parse(textwrap.dedent(text)).body[0]
    except (SyntaxError, RecursionError) as reason:
        name = getattr(function, "__name__", function)
        raise KernelSourceError(
            f"the source of {name!r} cannot be read by itself: {reason}"
        ) from None
    file = inspect.getsourcefile(function) or "<unknown>"
    indent = len(lines[0]) - len(lines[0].lstrip())
    if not isinstance(tree, ast.FunctionDef):
        raise KernelSourceError(f"a kernel is a plain function, not {type(tree).__name__}")
    source = KernelSource(
        name=function.__name__,
        file=file,
        first_line=first_line,
        lines=tuple(line.rstrip("\n") for line in lines),
        indent=indent,
        tree=tree,
        function=function,
    )
    _check(source)
    return source


def _check(source: KernelSource) -> None:
    arguments = source.tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise source.error("a kernel takes plain positional parameters", source.tree)
    waiting: list[ast.AST] = list(reversed(source.tree.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            _check_statement(source, node)
            waiting += reversed(list(_parts(node)))
        elif isinstance(node, ast.expr):
            _check_expression(source, node)


def _check_statement(source: KernelSource, node: ast.stmt) -> None:
    if not isinstance(node, STATEMENTS):
        raise source.error(f"kernels do not have {_what(node)}", node)
    if isinstance(node, ast.For | ast.While) and node.orelse:
        raise source.error("kernels do not have else after a loop", node.orelse[0])
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and not isinstance(node.value.value, str)
    ):
        raise source.error("a constant on its own does nothing", node)


def _parts(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the child nodes of a statement, except an annotation."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
            yield child


def _check_expression(source: KernelSource, root: ast.expr) -> None:
    for node in ast.walk(root):
        known = (*EXPRESSIONS, *OPERATORS, ast.expr_context, ast.keyword)
        if not isinstance(node, known):
            place = node if isinstance(node, ast.expr) else root
            raise source.error(f"kernels do not have {_what(node)}", place)
        if isinstance(node, ast.Call) and node.keywords:
            allowed = {"shape", "dtype", "mask"}
            for keyword in node.keywords:
                if keyword.arg not in allowed:
                    raise source.error("calls in kernels take positional arguments", node)


def _what(node: ast.AST) -> str:
    return WHAT.get(type(node), type(node).__name__.lower())
