"""The list of all texts that a user may see, from code in Python and of the page."""

from scripts.generators.messages import python_texts, script_texts


def test_texts_of_python_have_the_names_of_their_values() -> None:
    """Docstrings, names and single words are left out; literals that are joined are one text."""
    source = '''
"""Docstring of several plain words."""

def run(name):
    """Another docstring of some words."""
    LOG.warning("%s: topic alerts was recreated", name)
    raise ValueError(
        f"{path.name} cannot be read by {', '.join(names)}: "
        f"{reason_of(error)} is the reason"
    )
    return {"key": "one two", "other": "featurewatch.alerts and/or x=1"}
'''
    assert list(python_texts(source)) == [
        "%s: topic alerts was recreated",
        "{name} cannot be read by {names}: {error} is the reason",
    ]


def test_texts_of_the_page_are_those_that_are_shown() -> None:
    """Of markup the text between its tags."""
    source = """
// A comment with several plain words.
const a = `<p class="one two three">Nothing is known of ${cluster.name}</p>`;
const b = "Levels can be raised now";
const c = "x";
"""
    assert list(script_texts(source)) == [
        "Nothing is known of {name}",
        "Levels can be raised now",
    ]
