"""The launches that a Python file makes of its kernels: `kernel[grid, block](x, y, n)`.

The file is read, not run: from `if __name__ == "__main__":`, then functions that nothing calls. As
in host code of CUDA C++ parameters that are not known keep their defaults, and loops have their
first iteration alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from gpusim.cuda_cpp.host_code import OPEN, UNKNOWN_SIZE, HostLaunch, KernelName
from gpusim.cuda_cpp.host_numbers import Number, Root, called, operation
from gpusim.cuda_cpp.host_values import Dim3, HostArray

MOST_CALLS = 12  # within each other
OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Div: "/", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
# Functions of NumPy and numba that make an array of a shape, with the type of its elements.
OF_A_SHAPE = {
    "zeros": "float64", "ones": "float64", "empty": "float64", "full": "float64",
    "device_array": "float64", "pinned_array": "float64", "managed_array": "float64",
    "random": "float64", "random_sample": "float64",
}  # fmt: skip
OF_SIZES = {"rand": "float64", "randn": "float64"}
LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "device_array_like")
SAME = ("to_device", "copy", "asarray", "ascontiguousarray", "array", "copy_to_device", "reshape")


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def python_launches(text: str, names: Mapping[Root, str]) -> Sequence[HostLaunch]:
    """Return the launches of a Python file; `names` are texts for constants of the source."""
    try:
        return _Host(ast.parse(text), names).all()
    except (SyntaxError, ValueError, RecursionError):
        return []


class _Host:
    """Follows a file, and keeps the launches that it comes to."""

    def __init__(self, tree: ast.Module, names: Mapping[Root, str]) -> None:
        self._names, self._tree = names, tree
        self._functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self._globals: dict[str, Any] = {}
        self._constants: dict[Root, Fraction] = {}
        self._found: list[HostLaunch] = []
        self._called: set[str] = set()
        self._depth = 0

    def all(self) -> Sequence[HostLaunch]:
        """Return the launches, those of the module first."""
        self._run(self._tree.body, self._globals)
        for name, node in self._functions.items():
            if name not in self._called and not node.decorator_list:
                self._call(name, [], {})
        return self._found

    def _call(self, name: str, given: Sequence[Any], by_name: Mapping[str, Any]) -> Any:
        if self._depth >= MOST_CALLS:
            return None
        self._called.add(name)
        node = self._functions[name]
        words = [one.arg for one in node.args.args]
        env: dict[str, Any] = {one: self._unknown(one) for one in words}
        defaults = node.args.defaults
        for word, default in zip(words[len(words) - len(defaults) :], defaults, strict=True):
            env[word] = self._value(default, {})
        env |= {**dict(zip(words, given, strict=False)), **by_name}
        self._depth += 1
        try:
            self._run(node.body, env)
        except _Return as found:
            return found.value
        finally:
            self._depth -= 1
        return None

    def _unknown(self, name: str) -> Any:
        return self._named(Number.of(UNKNOWN_SIZE, root=(OPEN, name)))

    def _named(self, number: Number) -> Number:
        if number.root is None:
            return number
        self._constants[number.root] = number.value
        return replace(number, text=self._names.get(number.root, number.text))

    # -- statements

    def _run(self, statements: Sequence[ast.stmt], env: dict[str, Any]) -> None:
        for one in statements:
            found = _STATEMENTS.get(type(one))
            if found is not None:
                found(self, one, env)
            elif not isinstance(one, ast.FunctionDef | ast.ClassDef):
                for body in ("body", "orelse", "finalbody"):
                    self._run(getattr(one, body, ()), env)

    def _assign(self, node: Any, env: dict[str, Any]) -> None:
        value = self._value(node.value, env)
        for target in getattr(node, "targets", None) or [node.target]:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            several = isinstance(target, ast.Tuple) and isinstance(value, tuple)
            values = value if several else [value] * len(names)
            for one, made in zip(names, values, strict=False):
                if isinstance(one, ast.Name):
                    env[one.id] = made

    def _augment(self, node: ast.AugAssign, env: dict[str, Any]) -> None:
        binary = ast.BinOp(node.target, node.op, node.value)
        if isinstance(node.target, ast.Name):
            env[node.target.id] = self._value(binary, env)

    def _if(self, node: ast.If, env: dict[str, Any]) -> None:
        test = node.test
        is_main = isinstance(test, ast.Compare) and ast.unparse(test.left) == "__name__"
        value = Number.of(1) if is_main else self._value(test, env)
        for part in (node.body, node.orelse):
            if not isinstance(value, Number) or bool(value.value) == (part is node.body):
                try:
                    self._run(part, env)
                except _Return:
                    if isinstance(value, Number):
                        raise

    def _for(self, node: ast.For, env: dict[str, Any]) -> None:
        values = self._value(node.iter, env)
        if isinstance(node.target, ast.Name):
            env[node.target.id] = values[0] if isinstance(values, tuple) and values else None
        self._run(node.body, env)

    def _evaluate(self, node: ast.Expr, env: dict[str, Any]) -> None:
        self._value(node.value, env)

    def _return(self, node: ast.Return, env: dict[str, Any]) -> None:
        raise _Return(None if node.value is None else self._value(node.value, env))

    # -- expressions

    def _value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        found = _VALUES.get(type(node))
        return None if found is None else found(self, node, env)

    def _constant(self, node: ast.Constant, env: dict[str, Any]) -> Any:
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            return node.value if isinstance(node.value, str | float) else None
        return self._named(Number.of(node.value, root=("at", node.lineno, node.col_offset)))

    def _name(self, node: ast.Name, env: dict[str, Any]) -> Any:
        return env.get(node.id, self._globals.get(node.id))

    def _tuple(self, node: ast.Tuple, env: dict[str, Any]) -> Any:
        return tuple(self._value(one, env) for one in node.elts)

    def _binary(self, node: ast.BinOp, env: dict[str, Any]) -> Any:
        given = self._value(node.left, env), self._value(node.right, env)
        a, b = (Number.of(one) if isinstance(one, float) else one for one in given)
        if not isinstance(a, Number) or not isinstance(b, Number):
            return next((one for one in (a, b) if isinstance(one, HostArray)), None)
        if isinstance(node.op, ast.Pow):
            is_small = abs(b.value) <= 64 and b.value.denominator == 1
            made = Number(a.value**b.whole) if is_small else None
        else:
            operator = OPERATORS.get(type(node.op), "")
            made = operation(operator, a, b, is_whole=not isinstance(node.op, ast.Div))
        if made is None or made.text or not (_is_literal(node.left) and _is_literal(node.right)):
            return made
        return self._named(replace(made, root=("at", node.lineno, node.col_offset, "whole")))

    def _compare(self, node: ast.Compare, env: dict[str, Any]) -> Any:
        a, b = self._value(node.left, env), self._value(node.comparators[0], env)
        if len(node.ops) > 1 or not isinstance(a, Number) or not isinstance(b, Number):
            return None
        word = _COMPARISONS.get(type(node.ops[0]))
        return None if word is None else operation(word, a, b, is_whole=True)

    def _attribute(self, node: ast.Attribute, env: dict[str, Any]) -> Any:
        of = self._value(node.value, env)
        if isinstance(of, HostArray):
            return {"shape": of.shape, "size": _product(of.shape), "T": of}.get(node.attr)
        return node.attr if node.attr in _DTYPES else None

    def _subscript(self, node: ast.Subscript, env: dict[str, Any]) -> Any:
        of, at = self._value(node.value, env), self._value(node.slice, env)
        if isinstance(of, tuple) and isinstance(at, Number):
            return of[at.whole] if -len(of) <= at.whole < len(of) else None
        return of if isinstance(of, HostArray) else None

    def _called_function(self, node: ast.Call, env: dict[str, Any]) -> Any:
        given = [self._value(one, env) for one in node.args]
        by_name = {one.arg: self._value(one.value, env) for one in node.keywords if one.arg}
        function = node.func
        if isinstance(function, ast.Subscript) and isinstance(function.value, ast.Name):
            if function.value.id in self._functions:
                self._launch(function, given, node.lineno, env)
            return None
        name = ast.unparse(function)
        if name in self._functions:
            return self._call(name, given, by_name)
        of = self._value(function.value, env) if isinstance(function, ast.Attribute) else None
        return self._library(name.rpartition(".")[2], given, by_name, of)

    def _library(self, name: str, given: Sequence[Any], by_name: Mapping[str, Any], of: Any) -> Any:
        numbers = [one for one in given if isinstance(one, Number)]
        words = (one for one in (*by_name.values(), *given) if isinstance(one, str))
        dtype = next((one for one in words if one in _DTYPES), None)
        first = given[0] if given else None
        if name in OF_A_SHAPE or "size" in by_name:
            shape = by_name.get("size", by_name.get("shape", first))
            return _array(shape, dtype or OF_A_SHAPE.get(name, "int64"))
        if name in OF_SIZES:
            return _array(tuple(given), OF_SIZES[name])
        if name == "arange" and len(numbers) == 1:
            return _array(first, dtype or "int64")
        if name in LIKE and isinstance(first, HostArray):
            return replace(first, dtype=dtype or first.dtype)
        if name == "astype" and isinstance(of, HostArray):
            return replace(of, dtype=dtype or of.dtype)
        if name in SAME:
            made = first if isinstance(first, HostArray) else of
            shape = given if name == "reshape" and len(given) > 1 else first
            if name == "reshape" and isinstance(of, HostArray):
                return _array(tuple(shape) if isinstance(shape, list) else shape, of.dtype)
            return replace(made, dtype=dtype or made.dtype) if isinstance(made, HostArray) else None
        if name == "len" and isinstance(first, HostArray):
            return first.shape[0]
        if name == "range":
            return (Number.of(0) if len(given) < 2 else first,)
        if name in ("int", *_DTYPES) and numbers:
            return numbers[0]
        if name in ("float", *_DTYPES) and isinstance(first, float):
            return first
        return called(name, numbers) if numbers and len(numbers) == len(given) else None

    def _launch(
        self, function: ast.Subscript, given: Sequence[Any], line: int, env: dict[str, Any]
    ) -> None:
        configuration = self._value(function.slice, env)
        if not isinstance(configuration, tuple) or len(configuration) < 2:
            return
        grid, block = map(_dim3, configuration[:2])
        shared = configuration[3] if len(configuration) > 3 else None
        if grid is not None and block is not None:
            held = shared if isinstance(shared, Number) and shared.value else None
            name = KernelName(ast.unparse(function.value))
            self._found.append(
                HostLaunch(name, grid, block, held, tuple(given), line, self._constants)
            )


_DTYPES = frozenset(
    ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
     "uint32", "uint64", "bool")
)  # fmt: skip
_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_STATEMENTS: Mapping[type[ast.stmt], Callable[[_Host, Any, dict[str, Any]], None]] = {
    ast.Assign: _Host._assign, ast.AugAssign: _Host._augment, ast.If: _Host._if,
    ast.For: _Host._for, ast.Expr: _Host._evaluate, ast.Return: _Host._return,
}  # fmt: skip
_VALUES: Mapping[type[ast.expr], Callable[[_Host, Any, dict[str, Any]], Any]] = {
    ast.Constant: _Host._constant, ast.Name: _Host._name, ast.Tuple: _Host._tuple,
    ast.List: _Host._tuple, ast.BinOp: _Host._binary, ast.Compare: _Host._compare,
    ast.Attribute: _Host._attribute, ast.Subscript: _Host._subscript,
    ast.Call: _Host._called_function,
}  # fmt: skip


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_literal(node.left) and _is_literal(node.right)
    return isinstance(node, ast.Constant)


def _array(shape: Any, dtype: str) -> HostArray | None:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    is_known = sizes and all(isinstance(one, Number) for one in sizes)
    return HostArray(np.dtype(dtype).name, sizes) if is_known else None


def _product(sizes: Sequence[Number]) -> Number | None:
    made: Number | None = sizes[0]
    for one in sizes[1:]:
        made = None if made is None else operation("*", made, one, is_whole=True)
    return made


def _dim3(value: Any) -> Dim3 | None:
    sizes = value if isinstance(value, tuple) else (value,)
    is_known = 0 < len(sizes) <= 3 and all(isinstance(one, Number) for one in sizes)
    return Dim3(*sizes) if is_known else None
