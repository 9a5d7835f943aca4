"""All code derives the fields of a post from the table in documents.py, and the reference lists them."""

import re
from pathlib import Path

import pytest

from blogapi.api.schemas import Line
from blogapi.documents import EXAMPLE, FIELDS, INPUT_FIELDS, OPTIONAL, SHORT_TEXTS
from blogapi.markdown.fields import FIELD_NAMES, IGNORED
from blogapi.markdown.programs import WRITTEN
from blogapi.posts.schemas import PostChangeSchema, PostInputSchema, PostSchema
from blogapi.wings.owner.fields import FORM_FIELDS, LABELS
from tests.blogs import read, write_files
from tests.conftest import message
from tests.owner.pages import enter, view

POST = {"title": "A", "content": "B"}
each_optional_text = pytest.mark.parametrize("name", [name for name in SHORT_TEXTS if name in OPTIONAL])


def test_schemas_files_and_the_owners_form_have_the_fields_of_a_document():
    assert tuple(PostSchema().fields) == tuple(FIELDS)
    assert set(PostInputSchema().fields) == set(PostChangeSchema().fields) == set(INPUT_FIELDS)
    in_files = set(FIELDS) - {"content", "updated_at"}
    assert set(WRITTEN) == set(FIELD_NAMES) | set(IGNORED) == in_files
    assert set(FORM_FIELDS) == set(INPUT_FIELDS) - {"former_slugs"}  # The form only shows these.


def test_the_reference_has_each_field_with_its_length():
    reference = Path("docs/reference.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", reference, re.MULTILINE))
    assert set(FIELDS) <= rows.keys(), "edit the table in docs/reference.md"
    lengths = {name: field.max_length for name, field in FIELDS.items() if field.max_length and field.kind != "url"}
    assert [name for name, longest in lengths.items() if not re.search(rf"at most {longest:,}\b", rows[name])] == []


@each_optional_text
def test_a_text_is_set_cleared_by_two_empty_values_and_restored(client, name):
    said, longest = {name: EXAMPLE[name]}, FIELDS[name].max_length
    assert client.post("/v1/posts", json=POST | {name: ""}).json.keys() & {"id", name} == {"id"}
    post = client.post("/v1/posts", json=POST | said)
    path = post.headers["Location"]
    assert post.json[name] == EXAMPLE[name]
    for empty in ("", None):
        assert client.patch(path, json={name: empty}).json.keys() & {"id", name} == {"id"}
        assert client.patch(path, json=said).json[name] == EXAMPLE[name]
    assert name not in client.put(path, json=POST).json
    (first,) = client.get(f"{path}/revisions?limit=1").json
    assert client.post(f"{path}/revisions/{first['revision']}/restore").json[name] == EXAMPLE[name]
    wrong = message(client.patch(path, json={name: "x" * (longest + 1)}))
    assert wrong == f"{name}: must have at most {longest:,} characters"
    assert client.patch(path, json={name: "a\nb"}).status_code == (400 if FIELDS[name].kind == "line" else 200)
    assert Line(9, required=False).deserialize(" ") == ""  # An optional field may be a line, too.


@each_optional_text
def test_a_text_is_written_into_a_markdown_file_and_read_from_it(client, name):
    path = client.post("/v1/posts", json=POST | {name: EXAMPLE[name]}).headers["Location"]
    file = client.get(path, headers={"Accept": "text/markdown"}).text
    assert f"\n{name}: {EXAMPLE[name]}\n" in file
    markdown = {"Content-Type": "text/markdown"}
    new = client.post("/v1/posts", data=file.replace("slug: a", "slug: c"), headers=markdown)
    assert (new.status_code, new.json[name]) == (201, EXAMPLE[name])
    without = file.replace(f"{name}: {EXAMPLE[name]}\n", "")
    assert name not in client.put(path, data=without, headers=markdown).json


@each_optional_text
def test_a_text_that_is_too_long_is_shortened_by_an_import(tmp_path, name):
    longest = FIELDS[name].max_length
    (item,) = read(write_files(tmp_path, {"a.md": f"---\ntitle: A\n{name}: {'x' * (longest + 1)}\n---\n\nB"}))
    assert (item.fields[name], item.fields["params"]) == ("x" * longest, {name: "x" * (longest + 1)})
    assert {**item.notes} == {"long texts": 3}


@each_optional_text
def test_a_text_is_shown_and_changed_on_the_owners_page(app, client, name):
    owner = enter(app)
    page = view(owner, "/settings/posts/new").press("Save draft", **POST, **{name: EXAMPLE[name]})
    assert EXAMPLE[name] in page.said
    page = view(owner, "/settings/posts/1/edit")
    assert (page.form("Save draft")[1][name], LABELS[name] in page.all("label")) == (EXAMPLE[name], True)
    too_long = page.press("Save draft", **{name: "x" * (FIELDS[name].max_length + 1)})
    assert f"Must have at most {FIELDS[name].max_length:,} characters." in too_long.said
    page.press("Save draft", **{name: ""})
    assert name not in client.get("/v1/posts/1").json
    assert view(owner, "/settings/posts/1/history").all(".versions div .muted")[0] == LABELS[name]
    assert view(owner, "/settings/posts/1/compare?old=1").all("h2")[-1] == LABELS[name]
