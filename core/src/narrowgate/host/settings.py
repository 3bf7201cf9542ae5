"""From the raw values of a configuration to the attrs classes that components and sections declare.

Every fault of a class is found in one go: an unknown option, a wrong type, a broken rule, a secret that is not there.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError, StructureHandlerNotFoundError
from cattrs.strategies import configure_union_passthrough

from narrowgate.host import codes
from narrowgate.seams.component import Problem
from narrowgate.values.secret import Secret

_SHOWN: Final = 60
"""The longest value, in characters, that a message repeats."""


@attrs.frozen
class Source:
    """Where a value comes from.

    Attributes:
        kind: which layer; later ones win: default, file, environment, argument.
        name: the file's path or the environment variable's name.
    """

    kind: Literal["default", "file", "environment", "argument"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


DEFAULT: Final = Source("default")
ARGUMENT: Final = Source("argument")


@attrs.frozen
class Given:
    """One value as it was written.

    Attributes:
        value: the raw value; text, for an environment variable.
        source: where it stands.
        folder: what a relative path in it is relative to; `None` is the working directory.
    """

    value: Any = attrs.field(repr=False)
    source: Source = ARGUMENT
    folder: Path | None = None


class _RefusedError(ValueError):
    """A value that cannot be what the option wants, in words that are ready for a report."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


def closest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name most like `name`, or `None` when none is alike."""
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def options_of(settings: type) -> dict[str, attrs.Attribute[Any]]:
    """Return the options of a settings class by name, their types resolved.

    Raises:
        NameError: an annotation that cannot be resolved.
        attrs.exceptions.NotAnAttrsClassError: no attrs class.
    """
    return {field.alias or field.name: field for field in attrs.fields(attrs.resolve_types(settings)) if field.init}


VARIABLES: Final = "variables"
"""The key of an attribute's metadata under which a settings class names environment variables of other programs."""


def from_variables(cls: type, given: Mapping[str, Given], env: Mapping[str, str]) -> dict[str, Given]:
    """Return `given`, with what other programs' variables say of the options that it leaves out.

    An attribute declares them as `attrs.field(metadata={"variables": ("FIRST", "SECOND")})`; the first one that is set and
    not empty is taken. They stand where the default would: whatever a configuration says wins over them, so that a variable
    which many programs read cannot redirect a component that is configured.

    Args:
        cls: a settings class.
        given: option -> value as written.
        env: the environment.
    """
    found = dict(given)
    for option, field in options_of(cls).items():
        name = next((name for name in field.metadata.get(VARIABLES, ()) if env.get(name)), None)
        if option not in found and name is not None:
            found[option] = Given(env[name], Source("environment", name))
    return found


def unknown_option(name: str, known: Sequence[str], *, where: str, source: Source, component: str | None) -> Problem:
    """Return the problem of an option that does not exist, with the closest one that does."""
    near = closest(name, known)
    if near is not None:
        hint = f"did you mean {near!r}?"
    else:
        hint = f"known here: {', '.join(sorted(known))}" if known else "there is nothing to set here: remove it"
    return Problem(codes.UNKNOWN_KEY, f"{where}: unknown option {name!r} ({source})", hint, component)


def structure(
    cls: type, given: Mapping[str, Given], env: Mapping[str, str], *, where: str, component: str | None = None
) -> tuple[Any, tuple[Problem, ...]]:
    """Make an instance of the settings class `cls`.

    Args:
        cls: an attrs class whose attributes are all typed.
        given: option -> value as written; options left out take their default.
        env: the environment that secrets are read from.
        where: how messages name the place, e.g. `[search]`.
        component: the component whose settings these are.

    Returns:
        The instance (`None` when there is a problem) and every problem.
    """
    options = options_of(cls)
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name, item in given.items():
        field = options.get(name)
        if field is None:
            problems.append(unknown_option(name, list(options), where=where, source=item.source, component=component))
            continue
        try:
            values[name] = _converter(item, env).structure(_prepared(item, field.type), field.type or Any)
        except _RefusedError as error:
            problems.append(Problem(error.code, _sentence(where, name, str(error), item.source), error.hint, component))
        except Exception as error:  # noqa: BLE001 - hooks of foreign types may raise anything, and all of it is a refusal
            problems.append(_wrong(where, name, item, field, error, component))
    for name, field in options.items():
        if name not in given and field.default is attrs.NOTHING:
            hint = f"set {name} ({describe_type(field.type)}) in {where}"
            problems.append(
                Problem(codes.MISSING_SETTING, f"{where}: option {name!r} has no value and no default", hint, component)
            )
    if problems:
        # What a converter would have made of a value is not known here, and its validator expects that.
        plain = {name: value for name, value in values.items() if options[name].converter is None}
        return None, (*problems, *_broken_rules(options, plain, given, where, component))
    try:
        return cls(**values), ()
    except Exception as error:  # noqa: BLE001 - validators and converters of foreign classes may raise anything
        problems = _broken_rules(options, values, given, where, component)
        if not problems:
            text = type(error).__name__ if any(_holds_secret(field.type) for field in options.values()) else _text(error)
            problems = [Problem(codes.WRONG_SETTING, f"{where}: {text}", f"correct the settings in {where}", component)]
        return None, tuple(problems)


def _broken_rules(
    options: Mapping[str, attrs.Attribute[Any]],
    values: Mapping[str, Any],
    given: Mapping[str, Given],
    where: str,
    component: str | None,
) -> list[Problem]:
    """Ask each option's validator, since making the instance stops at the first."""
    whole = SimpleNamespace(**values)
    problems = []
    for name, value in values.items():
        field = options[name]
        if field.validator is None:
            continue
        try:
            field.validator(whole, field, value)
        except Exception as broken:  # noqa: BLE001 - see above
            problems.append(_rule(where, name, given[name].source, field, broken, component))
    return problems


def _rule(
    where: str, name: str, source: Source, field: attrs.Attribute[Any], error: Exception, component: str | None
) -> Problem:
    detail = "the value is not valid" if _holds_secret(field.type) else _text(error)
    return Problem(codes.WRONG_SETTING, _sentence(where, name, detail, source), f"correct {name} in {where}", component)


def _wrong(
    where: str, name: str, item: Given, field: attrs.Attribute[Any], error: Exception, component: str | None
) -> Problem:
    if isinstance(error, StructureHandlerNotFoundError):
        detail = f"the type {describe_type(field.type)} cannot be read from a configuration"
        return Problem(
            codes.BAD_CONTRIBUTION,
            _sentence(where, name, detail, item.source),
            "report it to the plugin's author",
            component,
        )
    if isinstance(error, ForbiddenExtraKeysError):
        detail = f"unknown keys {', '.join(sorted(error.extra_fields))}"
    elif isinstance(item.value, Mapping) and _is_table(field.type):
        detail = f"a value of the table is not {describe_type(get_args(field.type)[1])}"
    else:
        detail = f"got {_shown(item.value)}, expected {describe_type(field.type)}"
    return Problem(codes.WRONG_SETTING, _sentence(where, name, detail, item.source), f"correct {name} in {where}", component)


def _sentence(where: str, name: str, detail: str, source: Source) -> str:
    return f"{where}: option {name!r}: {detail} ({source})"


def _text(error: Exception) -> str:
    """Return an exception's own words; attrs validators put theirs first and objects after."""
    return str(error.args[0]) if error.args else type(error).__name__


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | bool):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"a {type(value).__name__} of {len(str(value))} characters"
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def describe_type(kind: Any) -> str:
    """Return a type in the words of a report: `int`, `one of 'open', 'strict'`, `a list of str`, ..."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(repr(arg) for arg in args)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(repr(item.value) for item in kind)
    if _is_union(kind):
        return " or ".join(describe_type(arg) for arg in args if arg is not NoneType)
    if kind is Secret:
        return '{ env = "NAME" } or { file = "path" }'
    if kind is Path:
        return "a path"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset | set):
        return f"a list of {describe_type(args[0])}" if args else "a list"
    return getattr(kind, "__name__", str(kind))


def _is_union(kind: Any) -> bool:
    origin = get_origin(kind)
    return origin is Union or getattr(origin, "__name__", "") == "UnionType"


def _holds_secret(kind: Any) -> bool:
    return kind is Secret or any(_holds_secret(arg) for arg in get_args(kind))


def _converter(given: Given, env: Mapping[str, str]) -> cattrs.Converter:
    """Return a strict converter: a file's `"10"` is no int. Only the environment, which knows only text, is read."""
    made = cattrs.Converter(detailed_validation=False, forbid_extra_keys=True)
    text_only = given.source.kind == "environment"
    configure_union_passthrough(str | int | float | bool | None, made, accept_ints_as_floats=True)

    made.register_structure_hook(bool, lambda value, _: _boolean(value, text_only))
    # cattrs takes these hooks for enumerations of numbers and strings too, whose members only the type itself knows.
    made.register_structure_hook(int, lambda value, kind: _member(_integer(value, text_only), kind, int))
    made.register_structure_hook(float, lambda value, kind: _member(_real(value, text_only), kind, float))
    made.register_structure_hook(str, lambda value, kind: _member(_string(value), kind, str))
    made.register_structure_hook(Path, lambda value, _: _path(value, given.folder))
    made.register_structure_hook(Secret, lambda value, _: _secret(value, given, env))

    return made


def _prepared(item: Given, kind: Any) -> Any:
    """Return the raw value ready for `kind`: text of the environment is split into a list, and text is never a list."""
    value, args = item.value, get_args(kind)
    text_only = item.source.kind == "environment" and isinstance(value, str)
    if _is_union(kind) and NoneType in args:
        kinds = [arg for arg in args if arg is not NoneType]
        # For a name, "none" is a word of its own: it switches off, which is more than not saying anything.
        if text_only and value.lower() in ("", *(() if str in kinds else ("none",))):
            return None
        kind = kinds[0] if len(kinds) == 1 else kind
    if _is_list(kind) and value is not None:
        if text_only:
            return [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            raise TypeError("not a list")
    if _is_table(kind) and text_only:
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        table = {key.strip(): said.strip() for key, equals, said in pairs if equals}
        if len(table) != len(pairs):
            raise TypeError("not a table: each key once, with its value")
        return table
    return value


def _is_list(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, list | tuple | Sequence | set | frozenset)


def _is_table(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping) and len(get_args(kind)) == 2


def _member(value: Any, kind: type, plain: type) -> Any:
    return value if kind is plain else kind(value)


def _boolean(value: Any, text_only: bool) -> bool:
    if text_only and isinstance(value, str) and value.lower() in ("true", "false", "1", "0", "yes", "no"):
        return value.lower() in ("true", "1", "yes")
    if isinstance(value, bool):
        return value
    raise TypeError("not a bool")


def _integer(value: Any, text_only: bool) -> int:
    if text_only and isinstance(value, str):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("not an int")


def _real(value: Any, text_only: bool) -> float:
    if text_only and isinstance(value, str):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise TypeError("not a number")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("not a string")


def _path(value: Any, folder: Path | None) -> Path:
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise TypeError("not a path")
    path = Path(value).expanduser()
    return path if folder is None else folder / path


_HOW_GIVEN: Final = 'write { env = "NAME" } or { file = "path" } instead'


def _secret(value: Any, given: Given, env: Mapping[str, str]) -> Secret:
    """Read a secret from where it is kept. What was written is never repeated: it may be the secret itself."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, str):
        if given.source.kind == "environment":
            if not value:
                hint = f"unset {given.source.name}, or set it to the secret"
                raise _RefusedError(codes.MISSING_SECRET, "the environment variable is empty", hint)
            return Secret(value)
        raise _RefusedError(codes.LITERAL_SECRET, "a secret is written out in the configuration", _HOW_GIVEN)
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(next(iter(value.values())), str):
        raise _RefusedError(codes.WRONG_SETTING, "this is not how a secret is given", _HOW_GIVEN)
    ((kind, name),) = value.items()
    if kind == "env":
        found = env.get(name, "")
        if not found:
            raise _RefusedError(
                codes.MISSING_SECRET, f"the environment variable {name!r} is not set", f"set it: export {name}=..."
            )
        return Secret(found)
    if kind != "file":
        raise _RefusedError(codes.WRONG_SETTING, "this is not how a secret is given", _HOW_GIVEN)
    path = _path(name, given.folder)
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _RefusedError(
            codes.UNREADABLE_SECRET,
            f"the file {str(path)!r} cannot be read ({type(error).__name__})",
            "create it, readable by this user alone, with the secret on its one line",
        ) from None
    if not text:
        raise _RefusedError(codes.MISSING_SECRET, f"the file {str(path)!r} is empty", "write the secret into it")
    return Secret(text)
