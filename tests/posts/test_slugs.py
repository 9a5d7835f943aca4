"""Slugs: the short way for titles in ASCII, which must not differ from slugify's."""

from hypothesis import given
from hypothesis import strategies as st
from slugify import slugify

from blogapi.posts.slugs import SLUG_OPTIONS, slug_of

ASCII = st.text(st.characters(max_codepoint=127), max_size=90)
TITLES = ASCII | st.text("aZ09 -,'&#;_.", max_size=90)


@given(TITLES)
def test_the_slug_of_a_title_is_that_of_slugify(title):
    assert slug_of(title) == (slugify(title, **SLUG_OPTIONS) or "untitled")
