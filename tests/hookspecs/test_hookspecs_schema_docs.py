"""What docstrings say about a tool and its parameters."""

import json

import pytest

from hookloop_hookspecs.docstrings import read_docstring
from hookloop_hookspecs.schema import describe

GOOGLE = """Find a book.

    Looks in all halls.

    Args:
        title (str, optional): the title,
            or a part of it
        *authors: who wrote it: all of them
        limit: at most
        that many
        **more (dict[str, (int)]): further

    Returns:
        the shelf
    """

NUMPY = """Find a book.

    Looks in all halls.

    Parameters
    ----------
    title : str, optional
        the title,
        or a part of it
    *authors
        who wrote it: all of them
    limit, more : int
        at most
        that many

    Returns
    -------
    str
        the shelf
    """

SPHINX = """Find a book.

    Looks in all halls.

    :param str title: the title,
        or a part of it
    :type title: str
    :param authors: who wrote it: all of them
    :param limit: at most that many
    :returns: the shelf
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_three_styles_say_the_same(text: str) -> None:
    docs = read_docstring(text)
    assert docs.description.startswith("Find a book.\n\nLooks in all halls.")
    assert docs.parameters["title"] == "the title, or a part of it"
    assert docs.parameters["authors"] == "who wrote it: all of them"
    assert docs.parameters["limit"] == "at most that many"
    assert "a part of it" not in docs.description
    assert "the shelf" in docs.description


def test_a_docstring_of_one_line_and_none_at_all() -> None:
    assert read_docstring("Find it.").description == "Find it."
    assert read_docstring(None).description == ""
    assert read_docstring("   \n ").description == ""


@pytest.mark.parametrize(
    "text",
    ["Args:", "Args:\n\n", "Parameters\n----------", ":param x:", "Args: none", "Note: this\nArgs:\n    broken",
     "Parameters\n----------\n   deep\n shallow", ":param", "x:\n  y"],
)  # fmt: skip
def test_odd_docstrings_do_no_harm(text: str) -> None:
    read_docstring(text)


def test_prose_that_only_looks_like_a_section_stays() -> None:
    text = "Run the command.\n\nExample:\n    run: ls\n\nWarning: deletes."
    assert read_docstring(text).description == text


def test_what_an_annotation_says_stands_over_the_docstring() -> None:
    from typing import Annotated

    def f(a: Annotated[int, "from the annotation"], b: int) -> None:
        """Does.

        Args:
            a: from the docstring
            b: only here
        """

    properties = json.loads(describe(f).schema)["properties"]
    assert properties["a"]["description"] == "from the annotation"
    assert properties["b"]["description"] == "only here"
    assert describe(f).description == "Does."
