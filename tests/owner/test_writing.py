"""Writing posts on the owner's page, which validates them as the API does."""

import pytest

from blogapi.config import zone_named
from blogapi.storage.models import Post
from blogapi.wings.owner.fields import MORE_FIELDS
from tests.cases import cases
from tests.owner.pages import FULL, Page, enter, put_copy, send, shown, view


def test_a_post_is_created_with_all_its_fields(owner, client):
    page = view(owner, "/settings/posts/new").press("Save draft", **FULL)
    assert page.said[0] == "“Hello” was created."
    read = {"tags": ["One, two", "Three"], "params": {"author": "Ada", "series": {"part": 2}}}
    times = dict.fromkeys(("created_at", "updated_at"), "2026-11-20T12:00:00Z")
    assert client.get("/v1/posts/1").json == FULL | read | times | {"id": "1"}


@cases(
    ("label", "time", "status", "published_at"),
    ("Save draft", "", "draft", None),
    ("Save draft", "2027-01-02T03:04", "draft", "2027-01-02T03:04:00Z"),
    ("Publish now", "", "published", "2026-11-20T12:00:00Z"),
    ("Publish now", "2020-01-02T03:04", "published", "2020-01-02T03:04:00Z"),
    ("Schedule", "2027-01-02T03:04:05", "scheduled", "2027-01-02T03:04:05Z"),
)
def test_each_button_of_a_new_post_does_what_it_says(owner, client, label, time, status, published_at):
    page = view(owner, "/settings/posts/new").press(label, title="A", content="B", published_at=time)
    post = client.get("/v1/posts").json[0]
    assert (post["status"], post.get("published_at"), post["slug"][0]) == (status, published_at, "a")
    if status != "draft":
        page.press("Undo")
        assert client.get(f"/v1/posts/{post['id']}").json["status"] == "draft"


def test_the_form_that_saved_a_draft_publishes_the_same_text(owner, client):
    page = view(owner, "/settings/posts/new")
    copy = page.form("Save draft")[1]["copy"]
    page.press("Save draft", **FULL)
    page = view(owner, "/settings/posts/1/edit").press("Publish now", copy=copy)
    assert (page.said[0], client.get("/v1/posts/1").json["status"]) == ("“Hello” is now published.", "published")


def test_undoing_a_publication_keeps_the_text_that_was_typed_before_it(owner, client, post):
    post(content="Saved.")
    view(owner, "/settings/posts/1/edit").press("Publish now", content="Typed later.").press("Undo")
    now = client.get("/v1/posts/1").json
    assert (now["status"], now["content"], now.get("published_at")) == ("draft", "Typed later.", None)


@pytest.mark.parametrize(
    ("label", "time", "message"),
    [
        ("Publish now", "2027-01-02T03:04", "This date is in the future: press Schedule, or choose a past date."),
        ("Schedule", "", "Choose a date in the future to schedule the post."),
        ("Schedule", "2020-01-02T03:04", "Choose a date in the future to schedule the post."),
    ],
)
def test_a_date_that_does_not_suit_the_button_is_explained_and_changes_nothing(owner, client, label, time, message):
    page = view(owner, "/settings/posts/new").press(label, title="A", content="B", published_at=time)
    assert (page.status, page.all(".wrong"), page.soup.select("[popover]")) == (400, [message], [])
    assert client.get("/v1/posts").json == []
    page.press("Save draft", published_at="")
    assert client.get("/v1/posts/1").json["status"] == "draft"


def test_a_form_sent_again_after_its_post_was_deleted_says_so_and_creates_another(owner, client, count):
    action, fields = view(owner, "/settings/posts/new").form("Save draft")
    send(owner, action, fields | FULL)
    client.delete("/v1/posts/1")
    page = Page(owner, send(owner, action, fields | FULL))
    reason = "This form was sent before, and the post it created was deleted."
    assert page.all(".wrong, .problem") == [f"{reason} Press the button again to create another."]
    assert page.status == 400
    assert (shown(page, "Save draft"), count(Post)) == (FULL | {"published_at": ""}, 0)
    assert page.press("Save draft").said[0] == "“Hello” was created."


@pytest.fixture
def posts(post):
    """Two posts, which have the slugs `taken` and `mine`."""
    post(slug="taken")
    post(slug="mine")


@cases(
    ("name", "value", "message"),
    ("title", "", "A post needs a title of at most 255 characters."),
    ("content", " ", "Some text is needed."),
    ("excerpt", "x" * 1001, "Must have at most 1,000 characters."),
    ("slug", "Not a slug", "Must be lower-case letters a-z, digits and single hyphens between them."),
    ("slug", "taken", "Already taken by another post."),
    ("cover_image", "/a.jpg", "Must be an address that begins with https:// or http://, without spaces."),
    ("published_at", "20", "Choose a date and a time."),
    ("tags", "a, " + "x" * 65, "Tag 2: must have 1 to 64 characters."),
    ("tags", "x" * 140_000, "Must be tags of 1 to 64 characters."),
    ("params", "a: b: c", "Line 1: not valid YAML: mapping values are not allowed"),
)
def test_an_error_is_shown_next_to_its_field_and_nothing_typed_is_lost(owner, client, name, value, message, posts):
    typed = FULL | {"published_at": "2020-01-01T00:00:00", name: value}
    for path, label in (("/settings/posts/new", "Save draft"), ("/settings/posts/2/edit", "Save draft")):
        before = client.get("/v1/posts").json
        page = view(owner, path).press(label, **typed)
        assert client.get("/v1/posts").json == before
        assert (page.status, page.soup.title.text.startswith("Not saved: ")) == (400, True)
        (wrong,) = page.soup.select(".wrong")
        assert (wrong["id"], wrong.text.startswith(message)) == (f"{name}-wrong", True), wrong.text
        assert page.soup.select_one(f"#{name}")["aria-invalid"] == "true"
        assert shown(page, label) == typed
        page = page.press(label, **FULL | {"slug": "saved" + path[-1], "published_at": ""})
        assert page.said[0].startswith(("“Hello” was", "Nothing has changed"))
    client.delete("/v1/posts/by-slug/savedw")


def test_a_post_form_shows_the_post_and_saves_changes(owner, client, post):
    text = {"title": "Hello", "content": "\n\nWords.\n", "excerpt": "Short.", "status": "published"}
    before = post(**text, tags=["a", "b"], params={"a": 1, "b": {"c": True}})
    page = view(owner, "/settings/posts/1/edit")
    expected = text | {"tags": "a, b", "slug": "hello", "cover_image": "", "params": "a: 1\nb:\n  c: true\n"}
    assert shown(page, "Update").items() >= (expected | {"published_at": "2026-11-20T12:00:00"}).items()
    page = page.press("Update", title="Good day", tags="b,, c ,", excerpt="", params="b:\n  d: x")
    assert page.said[0] == "“Good day” was saved."
    after = before | {"title": "Good day", "tags": ["b", "c"], "params": {"b": {"d": "x"}}}
    del after["excerpt"]
    assert client.get("/v1/posts/1").json == after
    view(owner, "/settings/posts/1/edit").press("Update", params="")
    assert "params" not in client.get("/v1/posts/1").json


def test_saving_without_changes_changes_nothing_and_edited_texts_keep_their_line_breaks(owner, client, post, clock):
    for content in ("a\nb", "a\r\nb\r\n", "a\r\nb\n", "a\rb", "a\r\rb\r\nc\n"):
        fields = {"excerpt": content, "params": {"a": content}}
        before = post(content=content, published_at="2020-01-01T00:00:07Z", **fields)
        clock.now += 60
        path = f"/v1/posts/{before['id']}"
        view(owner, f"/settings/posts/{before['id']}/edit").press("Save draft")
        assert client.get(path).json == before
        view(owner, f"/settings/posts/{before['id']}/edit").press("Save draft", title="B")
        assert client.get(path).json == before | {"title": "B", "updated_at": client.get(path).json["updated_at"]}
    for old, typed, new in (("a\r\nb", "a\nb\nc", "a\r\nb\r\nc"), ("a\nb", "a\nb\nc", "a\nb\nc"), ("a", "a\n", "a\n")):
        path = f"posts/{post(content=old)['id']}"
        view(owner, f"/settings/{path}/edit").press("Save draft", content=typed)
        assert client.get(f"/v1/{path}").json["content"] == new


def test_a_draft_takes_any_date_and_emptying_it_clears_it_unless_the_post_is_published(owner, client, post):
    post(title="Hello", published_at="2020-01-01T00:00:00Z")
    view(owner, "/settings/posts/1/edit").press("Save draft", published_at="2027-01-01T00:00")
    assert client.get("/v1/posts/1").json["published_at"] == "2027-01-01T00:00:00Z"
    page = view(owner, "/settings/posts/1/edit").press("Save draft", published_at="")
    assert (page.said[0], "published_at" in client.get("/v1/posts/1").json) == ("“Hello” was saved.", False)
    scheduled = {"status": "scheduled", "published_at": "2026-11-21T00:00:00Z"}
    client.patch("/v1/posts/1", json=scheduled)
    page = view(owner, "/settings/posts/1/edit").press("Save", published_at="")
    assert page.all(".wrong") == ["Choose a date in the future to schedule the post."]
    assert client.get("/v1/posts/1").json.items() >= scheduled.items()
    published = {"status": "published", "published_at": "2020-01-01T00:00:00Z"}
    client.patch("/v1/posts/1", json=published)
    view(owner, "/settings/posts/1/edit").press("Update", title="Hi", published_at="")
    assert client.get("/v1/posts/1").json.items() >= (published | {"title": "Hi"}).items()


def test_the_largest_post_is_saved(owner, client):
    tags = [f"{'🧁' * 62}{number:02}" for number in range(50)]
    longest = {"title": "🧁" * 255, "content": "🧁" * 1_000_000, "excerpt": "🧁" * 1000, "tags": ", ".join(tags)}
    page = view(owner, "/settings/posts/new").press("Save draft", **longest, cover_image="https://a/" + "🧁" * 2038)
    assert page.status == 200
    assert client.get("/v1/posts/1").json.items() >= (longest | {"tags": tags}).items()


def test_the_slug_of_a_draft_follows_its_title_until_it_is_edited_or_published(owner, client, post):
    hint = "The end of the post’s address."
    post(title="Bread")
    view(owner, "/settings/posts/new").press("Save draft", title="Bread", content="B")
    form = view(owner, "/settings/posts/2/edit")
    assert form.form("Save draft")[1].items() >= {"slug": "bread-2", "suggested": "bread-2"}.items()
    assert form.all("#slug-hint") == [f"{hint} It follows the title until you edit it."]
    for typed, slug in (
        ({"content": "C"}, "bread-2"),
        ({"title": "Rolls"}, "rolls"),
        ({"slug": "mine"}, "mine"),
        ({"title": "Buns"}, "mine"),
        ({"slug": ""}, "buns"),
    ):
        page = view(owner, "/settings/posts/2/edit").press("Save draft", **typed)
        assert (client.get("/v1/posts/2").json["slug"], "former" in page.said[0]) == (slug, False), typed
    view(owner, "/settings/posts/2/edit").press("Publish now", title="Cake")
    assert client.get("/v1/posts/2").json.items() >= {"slug": "cake", "status": "published"}.items()
    form = view(owner, "/settings/posts/2/edit")
    assert form.all("#slug-hint") == [f"{hint} The old address will still lead here."]
    form.press("Update", title="Tea", slug="")
    assert client.get("/v1/posts/2").json["slug"] == "cake"
    client.patch("/v1/posts/1", json={"published_at": "2020-01-02T03:04:05Z"})  # a draft that was never public
    assert view(owner, "/settings/posts/1/edit").all("#slug-hint") == [hint]


@cases(
    ("line", "tags"),
    ("travel, hills", ["travel", "hills"]),
    ('"rain, snow", a "b", c', ["rain, snow", 'a "b"', "c"]),
    ('"say ""hi"""', ['say "hi"']),
    (" , ,", []),
    ("a\nb, c", ["a", "b", "c"]),
    ('"never ends', ["never ends"]),
)
def test_commas_separate_tags(owner, client, post, line, tags):
    post()
    view(owner, "/settings/posts/1/edit").press("Save draft", tags=line)
    assert client.get("/v1/posts/1").json["tags"] == tags
    view(owner, "/settings/posts/1/edit").press("Save draft", title="Same tags")
    assert client.get("/v1/posts/1").json["tags"] == tags


def test_existing_tags_are_suggested_but_not_to_a_stranger(owner, stranger, post):
    post(tags=["secret"])
    form = view(owner, "/settings/posts/new").soup
    assert [each["value"] for each in form.select("datalist option")] == ["secret"]
    assert [each["name"] for each in form.select("form [dir=auto]")] == ["title", "tags", *MORE_FIELDS, "params"]
    assert "secret" not in Page(stranger, send(stranger, "/settings/posts/new", FULL)).text


@cases("path", ["/settings/posts/new", "/settings/posts/1/edit"])
def test_all_wrong_fields_are_named_at_once(owner, post, path):
    post()
    typed = {"title": "", "content": "B", "slug": "A B", "params": "a: [", "tags": "x" * 140_000}
    page = view(owner, path).press("Save draft", **typed)
    assert page.all(".problem a") == ["Title", "Slug", "Tags", "Params"]
    assert len(page.all(".wrong")) == 4
    page = page.press("Save draft", title="A", content="B", slug="", params="", tags="", status="gone")
    assert (page.status, page.all(".problem a")) == (400, ["Status"])


def test_a_form_of_a_blog_with_many_tags_and_posts_is_small(owner, post):
    for number in range(6):
        post(tags=[f"{'🧁' * 60}{number * 25 + each}" for each in range(25)])
    files = ("posts/1/edit", "owner.js", "owner.css")
    assert sum(len(owner.get(f"/settings/{name}").data) for name in files) < 400_000


def test_a_post_that_went_live_while_it_was_edited_is_changed_only_after_a_question(owner, client, post, clock):
    post(content="One.")
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    page = view(owner, "/settings/posts/1/edit")
    clock.now += 3601
    page = page.press("Save", content="One. Half a sen")
    asked = "Not saved: this post is live now. Press Update to show readers the text below."
    assert (page.status, page.all(".problem")) == (412, [asked])
    assert client.get("/v1/posts/1").json["content"] == "One."
    assert page.press("Update").said[0] == "“A title” was saved."
    new = client.get("/v1/posts/1").json
    assert (new["content"], new["status"]) == ("One. Half a sen", "published")


def test_without_scripts_times_are_in_the_zone_that_the_page_names(own_app, client):
    tokyo = enter(own_app(timezone=zone_named("Asia/Tokyo")))
    typed = {"title": "A", "content": "B", "published_at": "2026-11-21T08:00"}
    page = view(tokyo, "/settings/posts/new").press("Schedule", **typed)
    assert client.get("/v1/posts/1").json["published_at"] == "2026-11-20T23:00:00Z"
    assert page.all("dd")[0] == "2026-11-21 08:00 Asia/Tokyo"
    page = view(tokyo, "/settings/posts/1/edit")
    assert "Date (Asia/Tokyo)" in page.all("label")
    assert page.form("Save")[1]["published_at"] == "2026-11-21T08:00:00"
    assert page.soup.find(id="published_at")["data-time"] == "2026-11-20T23:00:00Z"
    page.press("Save", title="C")
    assert client.get("/v1/posts/1").json["published_at"] == "2026-11-20T23:00:00Z"
    wrong = view(tokyo, "/settings/posts/1/edit").press("Save", title="", published_at="2026-11-22T08:00")
    assert (wrong.status, wrong.form("Save")[1]["published_at"]) == (400, "2026-11-22T08:00:00")
    wrong.press("Save", title="C", published_at="2026-11-22T00:00:00Z")  # as the script sends it
    assert client.get("/v1/posts/1").json["published_at"] == "2026-11-22T00:00:00Z"


def test_an_untouched_time_does_not_change_even_if_the_clocks_repeat_it(own_app, client, post):
    owner = enter(own_app(timezone=zone_named("Europe/Berlin")))
    post(status="published", published_at="2025-10-26T01:30:00Z")  # 2:30 for the second time
    page = view(owner, "/settings/posts/1/edit")
    assert page.form("Update")[1]["published_at"] == "2025-10-26T02:30:00"
    page.press("Update", title="B", published_at="2025-10-26T02:30")
    assert client.get("/v1/posts/1").json.items() >= {"title": "B", "published_at": "2025-10-26T01:30:00Z"}.items()


@pytest.fixture
def site_owner(own_app, post):
    """The owner of a blog whose posts have addresses on a site. One post is a draft, and one is published."""
    post(title="Rye bread")
    post(title="Public", status="published")
    return enter(own_app(post_url="https://blog.example/{slug}"))


@cases(
    ("path", "typed", "slug", "end"),
    ("new", {"title": "Rye bread"}, "rye-bread-2", "rye-bread-2"),
    ("new", {"title": "Rye bread", "slug": "old", "suggested": "old"}, "rye-bread-2", "rye-bread-2"),
    ("new", {"title": "Rye bread", "slug": "mine", "suggested": "old"}, "", "mine"),
    ("new", {"title": ""}, "", ""),
    ("1/edit", {"title": "Rye bread"}, "rye-bread", "rye-bread"),
    ("1/edit", {"title": "Wheat bread"}, "wheat-bread", "wheat-bread"),
    ("2/edit", {"title": "Wheat bread", "slug": ""}, "", "public"),
)
def test_a_form_learns_the_slug_and_the_address_that_it_would_get(site_owner, path, typed, slug, end):
    fields = view(site_owner, f"/settings/posts/{path}").form("Update" if path == "2/edit" else "Save draft")[1]
    fields |= typed | {"number": "1"}
    answer = put_copy(site_owner, fields).json
    assert (answer["slug"], answer["address"]) == (slug, end and f"https://blog.example/{end}")
    again = view(site_owner, f"/settings/posts/{path}?copy={fields['draft']}").soup
    values = [again.select_one(f"[name={name}]")["value"] for name in ("slug", "suggested")]
    assert values == [slug or typed.get("slug", ""), slug]
