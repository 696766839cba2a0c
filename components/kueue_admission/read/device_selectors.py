"""Selectors of devices: whether an expression in CEL, of a claim or of a DeviceClass, chooses a device.

The part of CEL that selectors of devices are written in: operators, `in`, `?:`, lists, `has`, `cel.bind`, and
Kubernetes' functions for strings, quantities and versions. The API server has compiled each expression that it stored,
so their types are right; what cannot be computed for one device, such as an attribute that it lacks, is an error, which
`&&` and `||` pass over where their other side decides. An expression with anything else is not modelled, and said so.
Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md, k8s.io/dynamic-resource-allocation@v0.36.3
cel/compile.go, k8s.io/apiserver pkg/cel/library/{quantity,semverlib}.go.
"""

from __future__ import annotations

import operator
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields

Value = Any
"""A bool, int, float, string, list, mapping, Quantity or `Version`."""
Scope = Mapping[str, Value]
"""Names that an expression may use, with their values."""
Node = Callable[[Scope], Value]
"""Part of an expression: its value where names have these values; raises SelectionError."""


class SelectionError(Exception):
    """The expression has no value for a device."""


class Version(NamedTuple):
    """A semantic version in its order: a release comes after what was before it, and a number before a word."""

    major: int
    minor: int
    patch: int
    is_release: bool
    pre_release: tuple[tuple[bool, int, str], ...]


_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


def parse_version(text: str) -> Version:
    """A semantic version; raises SelectionError for what is none."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise SelectionError(f"{text!r} is not a semantic version")
    parts = match[4].split(".") if match[4] else []
    before = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return Version(int(match[1]), int(match[2]), int(match[3]), not parts, before)


def parse_quantity(text: str) -> Quantity:
    """An amount; raises SelectionError for what is none."""
    try:
        return Quantity(text)
    except ValueError:
        raise SelectionError(f"{text!r} is not a quantity") from None


class _Domains(dict[str, dict[str, Value]]):
    """Values by domain and name; a domain without any is empty."""

    def __missing__(self, domain: str) -> dict[str, Value]:
        return {}


def device_of(driver: str, device: Fields) -> Mapping[str, Value]:
    """A device of a ResourceSlice as expressions see it. Names without a domain are in that of the driver.

    Raises SelectionError for a version or an amount that is none, NotModelledError for attributes of other types.
    """
    attributes, capacity = _Domains(), _Domains()
    for name in device.child("attributes").data:
        attribute = device.child("attributes").child(name).data
        kind = next(iter(attribute), "")
        if kind not in ("bool", "int", "string", "version"):
            raise NotModelledError(f"attributes of devices of type {kind!r}", device.path)
        _place(attributes, driver, name, parse_version(str(attribute[kind])) if kind == "version" else attribute[kind])
    for name in device.child("capacity").data:
        amount = device.child("capacity").child(name).data.get("value", "0")
        _place(capacity, driver, name, parse_quantity(str(amount)))
    return {"driver": driver, "attributes": attributes, "capacity": capacity}


def chosen_of(slices: Iterable[Fields]) -> Callable[[tuple[str, ...]], list[bool | str]]:
    """What says, by expressions, whether all of them choose each device of these ResourceSlices, or why not known."""
    devices = [
        (item.child("spec").text("driver"), device)
        for item in sorted(slices, key=lambda each: each.child("metadata").text("name"))
        for device in item.child("spec").children("devices")
    ]
    return cache(lambda expressions: [_choice(driver, device, expressions) for driver, device in devices])


def _choice(driver: str, device: Fields, expressions: tuple[str, ...]) -> bool | str:
    try:
        values = device_of(driver, device)
        return all(compiled(expression)(values) for expression in expressions)
    except SelectionError as error:
        return str(error)


def _place(domains: _Domains, driver: str, name: str, value: Value) -> None:
    domain, _, key = name.rpartition("/")
    domains.setdefault(domain or driver, {})[key] = value


@cache
def compiled(expression: str) -> Callable[[Mapping[str, Value]], bool]:
    """Whether the expression chooses a device, which raises SelectionError.

    Raises NotModelledError: it has what is not part of selectors here.
    """
    parser = _Parser(expression)
    try:
        node = parser.whole()
    except RecursionError:
        raise parser.refusal("so deep an expression") from None

    return lambda device: _truth(node({"device": device}))


_LONGEST: Final = 10_000
"""Characters of a text, or items of a list, that an expression may make."""
_MOST_REPEATS: Final = 4
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+\.\d+|\d+u?)|(?P<text>[rR]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>?:.,()\[\]]))"""
)
_LEVELS: Final = (("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_ORDERS: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


class _Parser:
    """By recursive descent, one method for each kind of operators."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.refusal(text[at:].strip()[:1])
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        self.tokens.append(("end", ""))

    def refusal(self, what: str) -> NotModelledError:
        return NotModelledError(f"{what!r} in the selector of devices {self.text}", "selectors")

    def whole(self) -> Node:
        node = self.choice()
        if self.tokens[0][0] != "end":
            raise self.refusal(self.tokens[0][1])
        return node

    def takes(self, *signs: str) -> str:
        """The next token if it is one of these; it is passed then."""
        kind, token = self.tokens[0]
        if kind in ("sign", "name") and token in signs:
            del self.tokens[0]
            return token
        return ""

    def needs(self, sign: str) -> None:
        if not self.takes(sign):
            raise self.refusal(self.tokens[0][1] or "the end")

    def choice(self) -> Node:
        node = self.logical("||", decided_by=True)
        if not self.takes("?"):
            return node
        first = self.choice()
        self.needs(":")
        second = self.choice()
        return lambda scope: first(scope) if _truth(node(scope)) else second(scope)

    def logical(self, sign: str, *, decided_by: bool) -> Node:
        operand = self.logical("&&", decided_by=False) if sign == "||" else self.binary(0)
        while self.takes(sign):
            right = self.logical("&&", decided_by=False) if sign == "||" else self.binary(0)
            operand = _either(operand, right, decided_by=decided_by)
        return operand

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        operand = self.binary(level + 1)
        while sign := self.takes(*_LEVELS[level]):
            operand = _applied(sign, operand, self.binary(level + 1))
        return operand

    def unary(self) -> Node:
        if self.takes("!"):
            return _negated(self.unary())
        if self.takes("-"):
            return _applied("-", _constant(0), self.unary())
        return self.member()

    def member(self) -> Node:
        node = self.primary()
        while sign := self.takes(".", "["):
            if sign == "[":
                node = _looked_up(node, self.choice())
                self.needs("]")
                continue
            _, name = self.tokens.pop(0)
            node = self.call(name, [node, *self.listed(")")]) if self.takes("(") else _looked_up(node, _constant(name))
        return node

    def primary(self) -> Node:
        if self.takes("("):
            node = self.choice()
            self.needs(")")
            return node
        if self.takes("["):
            items = self.listed("]")
            return lambda scope: [item(scope) for item in items]
        kind, token = self.tokens.pop(0)
        if kind == "text":
            return _constant(self.unquoted(token))
        if kind == "number":
            return _constant(float(token) if "." in token else int(token.rstrip("u")))
        if kind != "name":
            raise self.refusal(token or "the end")
        if token == "cel" and self.takes("."):  # noqa: S105
            return self.bound()
        if self.takes("("):
            return self.call(token, self.listed(")"))
        if token in _CONSTANTS:
            return _constant(_CONSTANTS[token])
        return _looked_up(lambda scope: scope, _constant(token))

    def unquoted(self, token: str) -> str:
        if token[0] in "rR":
            return token[2:-1]
        if re.search(r"""\\[^\\'"abfnrtv]|\n""", token.replace("\\\\", "")):
            raise self.refusal(token)
        return str(literal_eval(token))

    def bound(self) -> Node:
        """`cel.bind(name, value, expression)`."""
        self.needs("bind")
        self.needs("(")
        _, name = self.tokens.pop(0)
        self.needs(",")
        value = self.choice()
        self.needs(",")
        inner = self.choice()
        self.needs(")")
        return lambda scope: inner({**scope, name: value(scope)})

    def listed(self, close: str) -> list[Node]:
        nodes: list[Node] = []
        while not self.takes(close):
            nodes.append(self.choice())
            if not self.takes(","):
                self.needs(close)
                break
        return nodes

    def call(self, name: str, arguments: list[Node]) -> Node:
        if name == "has" and len(arguments) == 1:
            return lambda scope: _is_there(arguments[0], scope)
        function = FUNCTIONS.get((name, len(arguments)))
        if function is None:
            raise self.refusal(f"{name}()")

        def apply(scope: Scope) -> Value:
            try:
                return function(*(argument(scope) for argument in arguments))
            except (TypeError, AttributeError):
                raise SelectionError(f"no such overload: {name}") from None

        return apply


def _constant(value: Value) -> Node:
    return lambda scope: value


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise SelectionError(f"no such overload: {value} is not true or false")
    return value


def _negated(node: Node) -> Node:
    return lambda scope: not _truth(node(scope))


def _either(node: Node, right: Node, *, decided_by: bool) -> Node:
    def apply(scope: Scope) -> Value:
        try:
            if node(scope) is decided_by:
                return decided_by
        except SelectionError:
            if right(scope) is decided_by:
                return decided_by
            raise
        return right(scope)

    return apply


def _applied(sign: str, node: Node, right: Node) -> Node:
    def apply(scope: Scope) -> Value:
        one, other = node(scope), right(scope)
        if sign in ("==", "!="):
            return _equal(one, other) is (sign == "==")
        try:
            if sign == "in":
                return any(_equal(one, other_value) for other_value in other)
            if isinstance(one, bool) or isinstance(other, bool):
                raise TypeError
            return _ORDERS[sign](one, other) if sign in _ORDERS else _computed(sign, one, other)
        except (TypeError, ZeroDivisionError):
            raise SelectionError(f"no such overload: {sign}") from None

    return apply


def _computed(sign: str, one: Value, other: Value) -> Value:
    """Kubernetes gives up expressions that cost too much, and numbers that have no room in 64 bits."""
    kinds = (int, float, str, list) if sign == "+" else (int, float)
    if type(one) is not type(other) or type(one) not in kinds:
        raise TypeError
    if sign in ("+", "-", "*"):
        value = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](one, other)
    elif isinstance(one, float):
        value = one / other
    else:
        # Division of whole numbers cuts off what is left, also below 0.
        whole = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        value = whole if sign == "/" else one - whole * other
    size, most = (len(value), _LONGEST) if isinstance(value, (str, list)) else (abs(value), 2**63 - 1)
    if size > most:
        raise SelectionError(f"{sign} is too large")
    return value


def _equal(one: Value, other: Value) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _looked_up(node: Node, key: Node) -> Node:
    def apply(scope: Scope) -> Value:
        values, key_value = node(scope), key(scope)
        try:
            return values[key_value]
        except (KeyError, IndexError, TypeError):
            raise SelectionError(f"no such key: {key_value}") from None

    return apply


def _is_there(node: Node, scope: Scope) -> bool:
    try:
        node(scope)
    except SelectionError:
        return False
    return True


def _matches(text: str, pattern: str) -> bool:
    """Patterns of Go need no more time for hard ones; here those are refused."""
    hard = re.search(r"\)[*+?{]", pattern) or len(re.findall(r"[*+{]", pattern)) > _MOST_REPEATS
    try:
        if not hard:
            return re.search(pattern, text, re.ASCII) is not None
    except re.error:
        pass
    raise NotModelledError(f"the pattern {pattern!r} in a selector of devices", "selectors")


def _compared(one: Value, other: Value) -> int:
    return int(one > other) - int(one < other)


FUNCTIONS: Final[Mapping[tuple[str, int], Callable[..., Value]]] = {
    ("quantity", 1): parse_quantity,
    ("semver", 1): parse_version,
    ("compareTo", 2): _compared,
    ("isGreaterThan", 2): operator.gt,
    ("isLessThan", 2): operator.lt,
    ("major", 1): operator.attrgetter("major"),
    ("minor", 1): operator.attrgetter("minor"),
    ("patch", 1): operator.attrgetter("patch"),
    ("matches", 2): _matches,
    ("startsWith", 2): str.startswith,
    ("endsWith", 2): str.endswith,
    ("contains", 2): lambda text, part: part in text,
    ("lowerAscii", 1): str.lower,
    ("upperAscii", 1): str.upper,
    ("size", 1): len,
}
"""By name and number of arguments, the receiver of a method included."""
