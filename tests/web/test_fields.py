"""The fields of a post, which are named in several rooms, are the same in all of them."""

from blogapi.files.markdown import IGNORED, NAMES, WRITTEN
from blogapi.post import FIELDS, PostInputSchema, PostSchema, PutPostSchema

MADE_BY_THE_SERVICE = {"id", "created_at", "updated_at"}


def test_what_is_stored_is_what_is_answered_in_the_same_order():
    assert tuple(PostSchema().fields) == FIELDS


def test_what_is_taken_is_all_that_the_service_does_not_make():
    for schema in (PostInputSchema(), PutPostSchema()):
        assert set(schema.fields) == set(FIELDS) - MADE_BY_THE_SERVICE


def test_a_file_has_every_field_but_when_it_was_changed():
    assert set(WRITTEN) | {"content"} == set(FIELDS) - {"updated_at"}
    assert set(NAMES) | set(IGNORED) | {"content"} == set(FIELDS) - {"updated_at"}
