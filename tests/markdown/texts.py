"""Front matter, and strategies for posts with any text and params."""

from hypothesis import strategies as st

from blogapi.text import VISIBLE

# Characters that some YAML, TOML or Markdown readers change
SPECIAL = "\t\n\r\u2028\u2029\ufeff\u00a0\u200b-.:#'\"\\[]{},&*!|>%@`~?=+ \U0001f30d"
MARKS = ["---", "...", "+++", "=", "<<", "- ", "? a", "a: b", "# ", "\ufeff"]  # special at the start of a text
WORDS = ["null", "~", "No", "1_000", "0x1F", "1:2", "2026-11-20"]
LINE = "\t\n\r\u2028\u2029"


def any_text(most, without=""):
    """Any text of at most this length that the service accepts."""
    characters = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(SPECIAL)
    drawn = st.tuples(st.sampled_from(["", *MARKS, *WORDS]), st.text(characters)).map("".join)
    return drawn.map(lambda value: "".join(each for each in value if each not in without)[:most])


def visible(texts):
    return texts.filter(lambda value: VISIBLE.search(value))


NAMES = visible(any_text(64, LINE))
SCALARS = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | any_text(50)
VALUES = st.recursive(
    SCALARS, lambda values: st.lists(values, max_size=4) | st.dictionaries(NAMES, values, max_size=4), max_leaves=8
)
FIELDS = st.fixed_dictionaries(
    {"title": visible(any_text(255, LINE)), "content": visible(any_text(1000))},
    optional={
        "excerpt": any_text(1000),
        "tags": st.lists(NAMES, max_size=4),
        "cover_image": st.sampled_from(["https://a.example/b.png?c=d#e", "HTTP://ä.example/'\"{}:#\U0001f30d", ""]),
        "params": st.dictionaries(NAMES, VALUES, max_size=4),
    },
)


def front(text, content="Words.", mark="---"):
    return f"{mark}\n{text}\n{mark}\n\n{content}".encode()
