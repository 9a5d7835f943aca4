"""Several packages name the fields of a post, and they agree."""

from blogapi.documents import FIELDS
from blogapi.posts.schemas import PostInputSchema, PostSchema
from blogapi.wings.history.revisions import RESTORED
from blogapi.wings.markdown.files import FIELD_NAMES, IGNORED, WRITTEN
from blogapi.wings.owner import posts

SET_BY_THE_SERVICE = {"id", "created_at", "updated_at"}


def test_documents_and_answers_have_the_same_fields_in_the_same_order():
    assert tuple(PostSchema().fields) == FIELDS


def test_clients_can_set_every_field_that_the_service_does_not_set():
    for schema in (PostInputSchema(),):
        assert set(schema.fields) == set(FIELDS) - SET_BY_THE_SERVICE


def test_a_file_has_every_field_except_updated_at():
    assert set(WRITTEN) | {"content"} == set(FIELDS) - {"updated_at"}
    assert set(FIELD_NAMES) | set(IGNORED) | {"content"} == set(FIELDS) - {"updated_at"}


def test_restoring_a_revision_restores_every_field_except_slug_status_and_date():
    assert set(RESTORED) == set(PostInputSchema().fields) - {"slug", "former_slugs", "status", "published_at"}


def test_the_owners_form_has_every_field_that_clients_can_set_except_former_slugs():
    assert set(posts.FORM_FIELDS) == set(PostInputSchema().fields) - {"former_slugs"}  # The form only shows these.


def test_the_owners_page_has_a_label_for_every_field_of_its_form(app):
    assert set(app.jinja_env.get_template("owner/macros.html").module.labels) == set(posts.FORM_FIELDS)
