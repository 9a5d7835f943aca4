"""The history of posts and the trash, on the owner's page."""

from blogapi.storage.models import Revision
from tests.api.fixtures import with_key
from tests.owner.pages import enter, follow, pages, send, view

WORDS = {"title": "Hello", "content": "One.\nTwo.\n", "excerpt": "Short.", "tags": ["a", "b"]}


def without_times(post):
    return {name: value for name, value in post.items() if name != "updated_at"}


def get(client, post_id=1):
    return client.get(f"/v1/posts/{post_id}").json


def test_an_edit_is_undone_with_slug_status_and_date_if_its_version_exists(owner, client, post, database):
    before = post(**WORDS, published_at="2020-01-01T00:00:00Z", status="published", cover_image="https://example.org/a")
    typed = {"title": "Bye", "content": "x", "excerpt": "", "tags": "c", "slug": "bye", "cover_image": ""}
    page = view(owner, "/settings/posts/1/edit").press("Update")
    assert (page.said[0], page.soup.find("button", string="Undo")) == ("Nothing has changed.", None)
    action, fields = view(owner, "/settings/posts/1/edit").form("Update")
    send(owner, action, fields | typed)
    page = follow(owner, send(owner, action, fields | typed))  # without a change, which keeps Undo
    after = get(client)
    assert page.said[0] == "“Bye” was saved. Its former slug hello still leads to it."
    assert (after["slug"], after["status"]) == ("bye", "published")
    assert "hello" in page.all("dd")
    page = page.press("Undo")
    assert page.said[0] == "Change undone. Its former slug bye still leads to it."
    assert without_times(get(client)) == without_times(before) | {"former_slugs": ["bye"]}
    page = page.press("Undo")
    assert without_times(get(client)) == without_times(after)
    database.write(lambda tx: tx.execute(Revision.delete()))
    page = page.press("Undo")
    assert (page.status, page.said[0]) == (404, "No such revision.")


def test_an_undo_does_not_undo_later_changes_by_others(owner, client, post):
    post()
    page = view(owner, "/settings/posts/1/edit").press("Save draft", title="First")
    client.patch("/v1/posts/1", json={"excerpt": "theirs"})
    page = page.press("Undo")
    assert (page.status, page.all("h1")) == (412, ["First draft"])
    assert page.all(".problem h3, .problem .added") == ["Excerpt", "theirs"]
    assert (get(client)["title"], get(client)["excerpt"]) == ("First", "theirs")


def test_the_history_shows_what_each_version_has_changed_and_when_and_by_whom(owner, client, post, clock):
    post(title="First")
    assert view(owner, "/settings/posts/1/history").titles == []
    clock.now += 60
    client.patch("/v1/posts/1", json={"title": "Second"})
    clock.now += 60
    view(owner, "/settings/posts/1/edit").press("Save draft", title="Third")
    page = view(owner, "/settings/posts/1/history")
    assert page.all("h1, .back") == ["Third", "History"]
    assert page.all(".posts li") == [
        "Old New",
        "Current version, since 2026-11-20 12:02 UTC, by you Title",
        "2026-11-20 12:01 UTC by tests Title · “Second”",
        "2026-11-20 12:00 UTC The earliest version · “First”",
    ]
    assert page.press("Undo the last change").said[0] == "Change undone."
    assert client.get("/v1/posts/1").json["title"] == "Second"


def test_a_version_shows_what_restoring_it_would_change_and_can_be_restored(owner, client, post):
    post(**WORDS)
    client.patch("/v1/posts/1", json={"content": "One.\n2.\n", "title": "Bye", "slug": "bye"})
    page = view(owner, view(owner, "/settings/posts/1/history").soup.select(".posts a")[1]["href"])
    assert (page.all("h1"), page.all("section h3")) == (["Hello earlier"], ["Title", "Content"])
    assert (page.all(".removed"), page.all(".added")) == (["Bye", "2."], ["Hello", "Two."])
    assert page.soup.select_one(".text").text.strip() == "One.\nTwo."
    page = page.press("Restore this version")
    assert page.said[0] == "“Hello” was restored to an earlier version."
    assert without_times(get(client)).items() >= (WORDS | {"slug": "bye"}).items()
    page.press("Undo")
    client.patch("/v1/posts/1", json={"content": "3.", "status": "published"})
    assert view(owner, "/settings/posts/1/history/1").form("Restore for readers")


def test_any_two_versions_can_be_compared(owner, client, post):
    post(content="One.")
    for content in ("Two.", "Three."):
        client.patch("/v1/posts/1", json={"content": content})
    action, fields = view(owner, "/settings/posts/1/history").form("Compare the two")
    assert fields == {"old": "2", "new": ""}
    cases = {("2", ""): ["Two.", "Three."], ("1", "2"): ["One.", "Two."], ("", "1"): ["Three.", "One."], ("1", "1"): []}
    for (old, new), lines in cases.items():
        page = view(owner, f"{action}?old={old}&new={new}")
        assert page.all(".removed, .added") == lines, (old, new)
        links = [each["href"].removeprefix("/settings/posts/1/history/") for each in page.soup.select("main a.button")]
        assert links == [version for version in (old, new) if version]
    assert page.said[-1] == "There are no differences."
    assert page.said[0].startswith("Red lines are only in the version from 2026-11-20 12:00 UTC, and green lines are")
    for query, status in (("old=9", 404), ("old=x", 400), ("old=1&new=-1", 400), (f"old={10**18}", 404)):
        assert view(owner, f"{action}?{query}").status == status, query


def test_a_deleted_post_is_in_the_trash_until_an_undo_restores_it(owner, client, post):
    before = post(**WORDS)
    page = view(owner, "/settings/posts/1").press("Yes, delete")
    assert (page.said[0], page.all("h2")) == ("“Hello” is in the trash.", ["No posts"])
    assert get(client)["error"] == 404
    page = page.press("Undo")
    assert (page.said[0], without_times(get(client))) == ("“Hello” was restored.", without_times(before))
    assert page.press("Undo").said[0] == "“Hello” is in the trash."


def test_the_trash_shows_the_latest_deleted_first_and_each_can_be_read_and_restored(owner, client, post, clock):
    for title in ("First", "Second"):
        post(title=title, content=f"{title}.", slug=title.lower())
        clock.now += 60
        client.delete(f"/v1/posts/by-slug/{title.lower()}")
    page = view(owner, "/settings/trash")
    assert page.all(".posts li") == [
        "Second deleted 2026-11-20 12:02 UTC by tests Restore",
        "First deleted 2026-11-20 12:01 UTC by tests Restore",
    ]
    post(slug="second")
    page = view(owner, page.soup.select_one(".posts a")["href"])
    assert (page.all("h1"), page.soup.select_one(".text").text.strip()) == (["Second deleted"], "Second.")
    page = page.press("Restore")
    assert page.said[0] == "“Second” was restored, with the slug second-2."
    assert view(owner, "/settings/trash").titles == ["First"]


def test_a_post_even_a_damaged_one_is_deleted_for_good_after_a_confirmation(owner, client, post, damage):
    post(title="Hello")
    client.delete("/v1/posts/1")
    page = view(owner, "/settings/trash/1").press("Yes, delete for good")
    assert (page.said[0], page.titles) == ("“Hello” was deleted for good.", [])
    assert page.all(".posts li") == ["The trash is empty."]
    post()
    for path in ("posts/1/history", "posts/1/history/1", "posts/2/history/9", "trash/1", "trash/2"):
        assert view(owner, f"/settings/{path}").status == 404, path
    client.delete("/v1/posts/2")
    page = view(owner, "/settings/trash/2")
    damage("revision", "document", "no document")
    page.press("Yes, delete for good")
    assert client.get("/v1/trash").json == []


def test_the_trash_comes_in_pages(owner, client, post):
    for number in range(60):
        client.delete(f"/v1/posts/{post(title=str(number))['id']}")
    newer, older = pages(owner, "/settings/trash")
    assert (len(newer.titles), newer.titles + older.titles) == (50, [str(number) for number in range(59, -1, -1)])
    assert view(owner, older.soup.find("a", string="Newer")["href"]).titles == newer.titles


def test_the_history_of_a_large_post_comes_in_pages(owner, client, post):
    post(title="0", content="x" * 1_000_000)
    for number in range(1, 51):
        client.patch("/v1/posts/1", json={"title": str(number)})
    versions = ".versions li:nth-child(n+3) .muted bdi:last-child"
    found = [each for page in pages(owner, "/settings/posts/1/history") for each in page.all(versions)]
    assert found == [str(number) for number in range(49, -1, -1)]


def test_if_deleted_posts_are_not_kept_the_page_says_so(own_app):
    app = own_app(keep_days=0)
    owner = enter(app)
    with_key(app).post("/v1/posts", json={"title": "Hello", "content": "Words."})
    page = view(owner, "/settings/posts/1")
    assert "The post will be deleted forever." in page.said
    page = page.press("Yes, delete")
    assert (page.said[0], page.soup.find("button", string="Undo")) == ("“Hello” was deleted.", None)


def test_only_part_of_a_long_version_is_shown_and_its_words_are_not_counted(owner, client, post):
    post(content="\n".join(f"{number} {'x' * 3000}" for number in range(300)))
    for content in ("x" * 900_000, "fog " * 50_000, "old fog\nfog", "fog\nfog and lake"):
        client.patch("/v1/posts/1", json={"content": content})
    page = view(owner, "/settings/posts/1/history/1")
    assert (page.status, len(page.text) < 600_000, "The rest is not shown here." in page.text) == (200, True, True)
    page = view(owner, "/settings/posts/1/history")
    words = "(2 words added, 1 word removed) “fog <mark>and</mark>"
    assert [page.text.count(each) for each in ("added", "removed", words)] == [1, 1, 1]
