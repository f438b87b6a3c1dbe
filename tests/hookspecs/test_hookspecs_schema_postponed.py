"""Annotations that are texts: with the future import, in local scopes, and names that only type checkers see."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from hookloop_hookspecs import ConfigError, ToolContext, tool
from hookloop_hookspecs.schema import describe

if TYPE_CHECKING:
    from logging import Logger

    from somewhere import Ctx, Result, hooks  # type: ignore[import-not-found]  # what is tested: it does not exist

I01 = '''
from typing import Annotated, Optional
import dataclasses

@dataclasses.dataclass
class Range:
    low: int
    high: "int" = 3

def f(a: Annotated[int, "how many"], b: list[str] | None = None, c: "Optional[Range]" = None, *, d: list["Range"] = ()):
    """Counts.

    Args:
        b: names
    """
'''


def _f_of(source: str, module: ModuleType) -> Callable[..., Any]:
    exec(compile(source, module.__name__, "exec", dont_inherit=True), module.__dict__)
    function: Callable[..., Any] = module.f
    return function


def test_i01_the_schema_is_the_same_with_and_without_postponed_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [ModuleType("eager"), ModuleType("postponed")]
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    eager = describe(_f_of(I01, modules[0]))
    postponed = describe(_f_of("from __future__ import annotations\n" + I01, modules[1]))
    assert eager.schema == postponed.schema
    properties = json.loads(postponed.schema)["properties"]
    assert properties["a"] == {"type": "integer", "description": "how many"}
    assert properties["b"]["description"] == "names"
    assert properties["b"]["anyOf"] == [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]


def test_i03_an_injected_parameter_of_a_type_checkers_name() -> None:
    def f(ctx: Ctx, x: int) -> Result:
        return ctx, x

    signature = describe(f)
    assert signature.injected == ("ctx",)
    assert list(json.loads(signature.schema)["properties"]) == ["x"]
    assert signature.validate({"x": "4"}) == {"x": 4}
    assert signature.invoke(f, {"ctx": "C", "x": 4}) == ("C", 4)


def test_i03_neighbours() -> None:
    def f(
        x: int,
        context: Ctx | None,
        here: hooks.ToolContext | None = None,
        there: ToolContext | None = None,
        *,
        ever: Annotated[ToolContext, "not for the model"],
    ) -> Result: ...

    signature = describe(f)
    assert signature.injected == ("context", "here", "there", "ever")
    assert list(json.loads(signature.schema)["properties"]) == ["x"]


def test_a_parameter_named_ctx_with_a_known_type_is_the_models() -> None:
    def f(ctx: str) -> None: ...

    assert describe(f).injected == ()
    assert list(json.loads(describe(f).schema)["properties"]) == ["ctx"]


def test_a_parameter_of_the_model_with_a_type_checkers_name_is_refused_not_dropped() -> None:
    def f(x: int, log: Logger | None = None) -> None: ...

    with pytest.raises(ConfigError, match=r"'Logger \| None' of parameter 'log' cannot be resolved.*at run time"):
        describe(f)


def test_i03_what_a_partial_has_bound_need_not_be_resolved() -> None:
    def f(x: int, log: Logger) -> Result:
        return x, log

    log: Any = "L"
    bound = functools.partial(f, log=log)
    signature = describe(bound)
    assert signature.invoke(bound, signature.validate({"x": 1})) == (1, "L")


def test_an_injected_parameter_may_be_positional_only() -> None:
    def f(ctx: ToolContext, x: int = 1, /) -> Any:
        return ctx, x

    signature = describe(f)
    assert signature.invoke(f, {"ctx": "C", **signature.validate({"x": 2})}) == ("C", 2)
    assert signature.invoke(f, {"ctx": "C", **signature.validate({})}) == ("C", 1)


def test_types_of_the_function_around_are_found() -> None:
    class Local(BaseModel):
        n: int

    @dataclass
    class Other:
        inner: Literal["a"]

    @tool
    def f(it: Local, others: list[Other]) -> int:
        return it.n

    assert f.validate({"it": {"n": 1}, "others": [{"inner": "a"}]}) == {"it": Local(n=1), "others": [Other("a")]}


def test_types_of_the_class_around_are_found() -> None:
    class Desk:
        class Order(BaseModel):
            n: int

        @tool
        def place(self, order: Order) -> int:
            return order.n

    assert Desk().place.validate({"order": {"n": 2}}) == {"order": Desk.Order(n=2)}


def test_a_local_type_shadows_a_global_of_the_same_name() -> None:
    class ToolCall(BaseModel):
        number: int

    def f(it: ToolCall) -> None: ...

    assert describe(f).validate({"it": {"number": 1}}) == {"it": ToolCall(number=1)}


def test_types_that_a_closure_holds_are_found_after_the_function_around_has_returned() -> None:
    def make() -> Callable[..., Any]:
        class Held(BaseModel):
            n: int

        def f(it: Held) -> Any:
            return Held

        return f

    made = make()
    assert describe(made).validate({"it": {"n": 1}})["it"].n == 1
