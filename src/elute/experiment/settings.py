"""Settings by name: `updates=5000`, `actor.hidden=[256, 256]`.

Values are checked against the types of the frozen dataclass they go into; an unknown name is an
error that suggests the nearest one.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from elute.errors import EluteError

T = TypeVar("T")
COUNTS = ("updates", "size", "rate", "rounds", "members", "steps")
"""How settings end that must be above zero."""


def parse(texts: list[str]) -> dict[str, Any]:
    """`KEY=VALUE` texts; a value is JSON, or else a plain word.

    Raises:
        EluteError: there is no `=`.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise EluteError(f"--set {text}: expected KEY=VALUE", hint="as in --set updates=5000")
        try:
            found[key.strip()] = json.loads(value)
        except ValueError:
            found[key.strip()] = value.strip()
    return found


def with_settings(one: T, values: Mapping[str, Any]) -> T:
    """The same with other settings; a dot leads into a setting that has settings of its own.

    Raises:
        EluteError: no such setting, or a value of another type.
    """
    for key, value in values.items():
        one = _with(one, key, value, key)
    return one


def _with(one: T, key: str, value: Any, whole: str) -> T:  # noqa: ANN401 (whatever was given)
    if not is_dataclass(one) or isinstance(one, type):
        raise EluteError(f"{whole}: there is nothing to set inside")
    name, dot, rest = key.partition(".")
    known = [field.name for field in fields(one)]
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise EluteError(f"{type(one).__name__} has no setting {whole!r}", hint=hint)
    if dot:
        return replace(one, **{name: _with(getattr(one, name), rest, value, whole)})
    try:
        checked = TypeAdapter(get_type_hints(type(one))[name]).validate_python(value)
    except ValidationError as error:
        raise EluteError(f"{whole} = {value!r}: {error.errors()[0]['msg']}") from error
    if name.endswith(COUNTS) and checked is not None and checked <= 0:
        raise EluteError(f"{whole} = {value!r}: expected more than 0")
    return replace(one, **{name: checked})
