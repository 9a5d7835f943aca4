"""Several packages name the fields of a post, and they agree."""

from blogapi.documents import FIELDS
from blogapi.posts.schemas import PostInputSchema, PostSchema
from blogapi.wings.history.revisions import RESTORED
from blogapi.wings.markdown.files import FIELD_NAMES, IGNORED, WRITTEN
from blogapi.wings.owner import posts

CHANGEABLE = set(PostInputSchema().fields)


def test_schemas_files_revisions_and_the_owners_form_have_the_fields_of_a_document(app):
    assert tuple(PostSchema().fields) == FIELDS
    assert set(FIELDS) - {"id", "created_at", "updated_at"} == CHANGEABLE
    in_files = set(FIELDS) - {"content", "updated_at"}
    assert set(WRITTEN) == set(FIELD_NAMES) | set(IGNORED) == in_files
    assert set(RESTORED) == CHANGEABLE - {"slug", "former_slugs", "status", "published_at"}
    labels = app.jinja_env.get_template("owner/macros.html").module.labels
    assert set(labels) == set(posts.FORM_FIELDS) == CHANGEABLE - {"former_slugs"}  # The form only shows these.
