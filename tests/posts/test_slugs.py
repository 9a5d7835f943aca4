"""The fast path for slugs from ASCII titles, which must give the same results as slugify."""

from hypothesis import given
from hypothesis import strategies as st
from slugify import slugify

from blogapi.posts.slugs import SLUG_OPTIONS, slug_of

ASCII = st.text(st.characters(max_codepoint=127), max_size=90)
TITLES = ASCII | st.text("aZ09 -,'&#;_.", max_size=90)


@given(TITLES)
def test_the_slug_of_a_title_is_the_same_as_slugifys(title):
    assert slug_of(title) == (slugify(title, **SLUG_OPTIONS) or "untitled")
