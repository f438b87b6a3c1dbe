"""Structured output: the provider's own mode where it has one, else a tool that takes the output as its arguments."""

from __future__ import annotations

from hookloop_hookspecs import Message, Origin, Said, ToolCall, ToolSpec
from hookloop_hookspecs.errors import OutputError
from hookloop_hookspecs.messages import Text, ToolResult

from .judge import Judged, refused
from .run import Ended, OutputSpec, Run

TRIES = 3
"""How often the model is asked again for output that validates."""


def spec_of(output: OutputSpec) -> ToolSpec:
    """The output tool."""
    return ToolSpec(
        output.name, "Give the final answer with this tool, once, when you have all you need.", output.schema
    )


def uses_tool(run: Run) -> bool:
    """True when the output comes through the output tool."""
    return run.request.output is not None and not run.facts.traits.structured


def is_output(run: Run, call: ToolCall) -> bool:
    """True for a call of the output tool."""
    return run.request.output is not None and call.name == run.request.output.name


def judge_output(run: Run, call: ToolCall) -> Judged:
    """A call of the output tool: accepted, or answered with what is wrong."""
    output = run.request.output
    assert output is not None
    problem = _accept(run, output, call.raw)
    if not problem:
        run.accepted = call.id
        return Judged(call, call.raw, result=ToolResult(call.id, call.name, (Text("accepted"),)))
    _count(run, problem)
    return refused(call, f"This is not the output that was asked for: {problem[:2000]}")


def objection(run: Run, text: str) -> bool:
    """Take the final text as the output that was asked for; where it is not, tell the model why and go on.

    Raises `Ended` when the model was told so often enough.
    """
    output = run.request.output
    if output is None:
        return False
    problem = _accept(run, output, text)
    if not problem:
        return False
    _count(run, problem)
    if run.output_error is not None:
        raise Ended("failed", "OutputError", error=run.output_error)
    how = f"Call {output.name} with it." if uses_tool(run) else "Answer again, with nothing else."
    told = f"This is not the output that was asked for: {problem[:2000]}\n{how}"
    run.add(Said(Message("user", told, Origin("engine", turn=run.turn_id, round=run.round))))
    return True


def _accept(run: Run, output: OutputSpec, text: str) -> str:
    """Keep the output that `text` holds; gives back what is wrong with it, empty for nothing."""
    try:
        run.output = output.parse(text)
    except ValueError as error:
        return str(error) or type(error).__name__
    run.output_text = text
    return ""


def _count(run: Run, problem: str) -> None:
    """Count one more output that does not validate; after too many the turn ends, once the reply is history."""
    run.asked_again += 1
    if run.asked_again > TRIES:
        run.output_error = OutputError(f"the model gave no output that validates in {TRIES + 1} tries: {problem[:500]}")


def recover(run: Run) -> None:
    """After a resume: the output that was accepted before, from the log."""
    group, output = run.log.newest, run.request.output
    if group is None or output is None:
        return
    for place, said in group.results.items():
        call = group.call(place)
        if call.name == output.name and not said.message.results[0].is_error:
            _accept(run, output, call.raw)
