"""Walking JSON Schemas: their subschemas, and where their references lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
SINGLES: Final = (
    "items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
DEFINITIONS: Final = ("$defs", "definitions")

SIZE: Final = 20_000
"""How many subschemas inlining may make before it leaves the remaining references as they are."""

Schema = dict[str, Any]


def subschemas(schema: Any) -> Iterator[Any]:
    """The schemas directly within a schema; not what merely looks like one (an enum's values, a property's name)."""
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            yield from value.values()
        elif key in LISTS and isinstance(value, list):
            yield from value
        elif key in SINGLES:
            yield value


def mapped(schema: Any, change: Callable[[Any], Any]) -> Any:
    """A copy with `change` applied to every schema directly within."""
    if not isinstance(schema, dict):
        return schema
    return {key: _mapped(key, value, change) for key, value in schema.items()}


def _mapped(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if key in MAPS and isinstance(value, dict):
        return {name: change(inner) for name, inner in value.items()}
    if key in LISTS and isinstance(value, list):
        return [change(inner) for inner in value]
    return change(value) if key in SINGLES else value


def reference(schema: Any) -> str | None:
    """The local reference that a schema is, if it is one."""
    found = schema.get("$ref") if isinstance(schema, dict) else None
    return found if isinstance(found, str) and found.startswith("#") else None


def target(root: Any, pointer: str) -> Any:
    """What a local reference (`#/$defs/Node`) leads to. Raises `KeyError` when there is nothing."""
    found = root
    for step in steps(pointer):
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (IndexError, ValueError, TypeError) as error:
            raise KeyError(pointer) from error
    return found


def steps(pointer: str) -> list[str]:
    """The keys that a local reference goes by. Raises `KeyError` for an anchor (`#name`), which is not supported."""
    first, *parts = unquote(pointer.removeprefix("#")).split("/")
    if first:
        raise KeyError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def inline_refs(schema: Schema) -> Schema:
    """The schema with its references replaced by what they lead to, for servers that do not follow them.

    Works for `$defs` and draft 7's `definitions`. References of a recursive definition stay, with the definition;
    so do those that lead nowhere or out of the schema. What stands beside a reference (a description) is kept, and
    stands over what the definition says. The input is not changed.
    """
    try:
        return _Inliner(schema).inlined()
    except RecursionError:  # nested deeper than Python goes, so deeper than any server would read
        return schema


class _Inliner:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._next: dict[str, set[str]] = {}
        self._follow(root)
        self._recursive = {ref for ref in self._next if ref in self._reached(ref)}
        self._size = 0

    def inlined(self) -> Schema:
        """The whole schema, with those definitions that are still referred to."""
        body = {key: value for key, value in self._root.items() if key not in DEFINITIONS}
        found: Schema = self._inline(body)
        wanted = references(found)
        while missing := [ref for ref in wanted if ref in self._next and not _has(found, ref)]:
            for ref in missing:
                wanted.discard(ref)
                wanted |= self._keep(found, ref)
        return found

    def _keep(self, found: Schema, ref: str) -> set[str]:
        """Put the definition that a reference needs into `found`; the references within."""
        match steps(ref):
            case [("$defs" | "definitions") as place, name, *_] if name in self._root.get(place, {}):
                kept = self._inline(self._root[place][name])
                found.setdefault(place, {})[name] = kept
                return references(kept)
        return set()

    def _inline(self, schema: Any) -> Any:
        self._size += 1
        ref = reference(schema)
        if ref is None or ref in self._recursive or ref not in self._next or self._size > SIZE:
            return mapped(schema, self._inline)
        beside = {key: value for key, value in mapped(schema, self._inline).items() if key != "$ref"}
        inner = self._inline(target(self._root, ref))
        if not isinstance(inner, dict):
            return beside or inner
        return {**{key: value for key, value in inner.items() if key not in DEFINITIONS}, **beside}

    def _follow(self, schema: Any) -> set[str]:
        """The references within a schema; notes for each where it leads on to. A leading-nowhere is not noted."""
        refs = references(schema)
        for ref in refs - self._next.keys():
            try:
                found = target(self._root, ref)
            except KeyError:
                continue
            self._next[ref] = set()
            self._next[ref] = self._follow(found)
        return refs

    def _reached(self, ref: str) -> set[str]:
        seen: set[str] = set()
        open_ = [*self._next[ref]]
        while open_:
            here = open_.pop()
            if here not in seen:
                seen.add(here)
                open_.extend(self._next.get(here, ()))
        return seen


def references(schema: Any) -> set[str]:
    """All local references within a schema, at any depth."""
    found: set[str] = set()
    open_ = [schema]
    while open_:
        here = open_.pop()
        if (ref := reference(here)) is not None:
            found.add(ref)
        open_.extend(subschemas(here))
    return found


def _has(schema: Schema, ref: str) -> bool:
    try:
        target(schema, ref)
    except KeyError:
        return False
    return True
