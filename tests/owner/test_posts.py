"""Posts on the owner's page: the list, reading a post, and its status."""

from urllib.parse import urlencode

import pytest

from blogapi.webhooks import storage as webhooks
from blogapi.wings.owner.posts import COUNTS, counts
from tests.cases import cases
from tests.owner.pages import SECTIONS, pages, view
from tests.service import add_key


def test_the_page_opens_on_the_posts_and_an_empty_blog_says_what_to_do_first(owner):
    for path in ("/settings", "/settings/"):
        page = view(owner, path)
        assert (page.all("h1"), page.all("h2")) == (["Posts"], ["Nothing here yet"])
    assert page.all("code")[0].startswith("curl 'http://127.0.0.1:8000/v1/posts' -H 'Authorization: Bearer YOUR_KEY'")


def test_a_date_is_called_a_publication_only_if_it_is_one(owner, client):
    past, to_come = "2020-01-02T03:04:05Z", "2099-01-02T03:04:05Z"
    for status, date, label in (
        ("published", past, "Published"),
        ("scheduled", to_come, "Scheduled for"),
        ("draft", past, "Date"),
        ("archived", past, "Date"),
    ):
        fields = {"title": "A", "content": "A", "status": status, "published_at": date}
        post = client.put(f"/v1/posts/by-slug/{status}", json=fields).json
        assert view(owner, f"/settings/posts/{post['id']}").all(".about dt")[0] == label


def test_posts_are_counted_by_their_current_status(owner, client, post, clock, database):
    for status in ("published", "draft", "draft"):
        post(status=status)
    client.patch("/v1/posts/2", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    client.patch("/v1/posts/1", json={"status": "archived"})
    assert counts(database) == {"published": 0, "draft": 1, "scheduled": 1, "archived": 1}
    clock.now += 3600
    older = post(status="published", published_at="2020-01-02T00:00:00Z")["id"]  # the last one in the list
    page = view(owner, "/settings/posts?status=published")
    assert page.all(".filter a") == ["All", "Published 2", "Draft 1", "Scheduled 0", "Archived 1", "Trash"]
    link, *_, last = [each["href"] for each in page.soup.select(".posts a")]
    assert [link, last] == [f"/settings/posts/{each}/edit?list=status%3Dpublished" for each in (2, older)]
    assert view(owner, link).soup.select_one(".back")["href"] == "/settings/posts?status=published"  # back to this list


def test_counting_reads_an_index_and_is_limited(plan, database):
    assert any("COVERING INDEX" in step and "(status=?)" in step for step in plan(COUNTS["draft"]))
    assert 100_000 in database.engine.statement(COUNTS["draft"]).values


def test_a_search_keeps_the_filter_and_a_filter_keeps_the_search(owner, client, post, put, form):
    for title in ("Café & Käse", "Brot", "Kaffee"):
        post(title=title)
    post(title="Cafe", status="published", content="Decaf, a decafé and <b>a</b>\nCafe.", excerpt="Short.")
    page = view(owner, "/settings/posts?q=cafe")
    assert page.titles == ["Cafe", "Café & Käse"]
    assert page.all(".line, mark") == ["…decafé and <b>a</b> Cafe.", "Cafe"]
    assert page.all("[aria-current=true]") == ["All"]
    (draft,) = [each["href"] for each in page.soup.select(".filter a") if each.text.startswith("Draft")]
    page = view(owner, draft)
    assert (page.titles, page.all("[aria-current=true]")) == (["Café & Käse"], ["Draft 3"])
    kept = {each["name"]: each["value"] for each in page.soup.select(".search input")}
    assert kept == {"status": "draft", "q": "cafe"}
    client.delete("/v1/posts/2")
    for word, text in (("nothing", ""), ("brot", ", except in the trash")):
        assert view(owner, f"/settings/posts?q={word}").all(".posts li") == [f"No post contains these words{text}."]
    assert len(view(owner, "/settings/posts?q=").titles) == 3
    put(form(), 1, content="Käse & bread")
    put(form("/settings/posts/1/edit"), 1, title="Pumpernickel")
    unsaved, cheese = "(No title) Käse & bread", "Café & Käse"
    cases = {"q=BREAD käs": [unsaved], "q=käse": [unsaved, cheese], "q=cafe pumper": [], "q=pumper": ["Pumpernickel"]}
    cases |= {"q=bread&status=draft": [unsaved], "q=bread&status=archived": [], "q=bread&tag=a": []}
    for query, titles in cases.items():
        assert view(owner, f"/settings/posts?{query}").titles == titles, query
    text = "No saved post contains these words. Of unsaved texts, only the titles are searched."
    assert view(owner, "/settings/posts?q=pumper").all(".posts li")[1:] == [text]


def test_a_search_finds_words_that_begin_with_the_last_one_and_says_if_there_are_none(owner, post):
    titles = ["Ven", "Venice in winter", "Winter"]
    for title in titles:
        post(title=title)
    cases = {"Venic": titles[1:2], "winter ven": titles[1:2], "ven win": [], '"ven"': titles[:1], "ven ": titles[:1]}
    cases |= {"ven*": titles[:2]} | dict.fromkeys(("(", "🧁", '"" *', "-"), titles)
    for words, matches in cases.items():
        page = view(owner, f"/settings/posts?{urlencode({'q': words})}")
        assert (page.status, sorted(page.titles)) == (200, matches), words
        assert page.soup.select_one("[name=q]")["value"] == words
        assert page.all(".problem") == ["Type a letter or a digit to search."] * (matches is titles), words


def test_the_trash_can_be_searched(owner, client, post):
    for title, content in (("Bread", 'Say "rye"\n100%'), ("Cake", "Words.")):
        client.delete(f"/v1/posts/{post(title=title, content=content)['id']}")
    cases = {"read": ["Bread"], '"rye"': ["Bread"], "0%": ["Bread"], "s%s": [], "": ["Cake", "Bread"]}
    for text, titles in cases.items():
        assert view(owner, f"/settings/trash?{urlencode({'q': text})}").titles == titles, text
    assert view(owner, "/settings/trash?q=x").all(".posts li") == ["No post in the trash contains this."]
    post()
    (link,) = [each for each in view(owner, "/settings/posts?q=bread").soup.select(".filter a") if each.text == "Trash"]
    assert view(owner, link["href"]).titles == ["Bread"]


@pytest.mark.both_engines
def test_the_latest_change_comes_first_and_pages_link_back_and_forth(owner, client, post, clock, put, form):
    for number in range(45):
        clock.now += number % 2  # some within the same second
        post(title=str(number))
    clock.now += 1
    client.patch("/v1/posts/1", json={"title": "changed"})
    expected = ["changed", *map(str, range(44, 0, -1))]
    older = [*pages(owner, "/settings/posts?status=draft")]
    assert [page.titles for page in older] == [expected[:20], expected[20:40], expected[40:]]
    newer = [*pages(owner, older[-1].soup.find("a", string="Newer")["href"], "Newer")]
    assert [page.titles for page in newer] == [expected[20:40], expected[:20]]
    assert [page.all("[aria-current=true]") for page in newer] == [["Draft 45"]] * 2
    typed = ("/settings/posts/1/edit", "changed"), ("/settings/posts/new", "New"), ("/settings/posts/3/edit", "Third")
    for path, title in typed:  # Unsaved texts come first, and are not listed again.
        clock.now += 1
        put(form(path), 1, title=title)
    client.patch("/v1/posts/3", json={"status": "published"})
    first, rest = ["Third", "New", "changed"], [title for title in expected if title not in ("2", "changed")]
    for query, titles in (("", first + rest), ("?status=draft", first[1:] + rest), ("?status=published", first[:1])):
        assert [title for page in pages(owner, f"/settings/posts{query}") for title in page.titles] == titles, query


def test_the_list_warns_if_the_clock_is_behind(owner, post, clock):
    post(status="published")
    assert view(owner, "/settings/posts").all(".problem") == []
    clock.now -= 3600
    told = "it says 2026-11-20 11:00 UTC, but a post is dated 2026-11-20 12:00 UTC."
    assert view(owner, "/settings/posts").all(".problem") == [f"The server’s clock is behind: {told}"]


@cases(
    "query", ["posts?status=x", "posts?before=x", "posts?limit=3", "posts?nothing=1", "trash?before=x", "trash?limit=2"]
)
def test_an_unknown_query_of_a_list_is_refused(owner, query):
    page = view(owner, f"/settings/{query}")
    assert (page.status, page.all("main a")) == (400, ["Back to the posts"])


def test_a_post_is_shown_with_all_its_fields(owner, post):
    fields = {"excerpt": "Short.", "tags": ["One, two", "<i>"], "cover_image": "https://example.org/a.jpg"}
    post(title="Hello", content="\n# A\n\n<b>b</b>", status="published", **fields)
    page = view(owner, "/settings/posts/1")
    assert page.all("h1") == ["Hello published", "A"]
    assert (page.all(".text h1"), page.all(".text p"), page.all("main b")) == (["A"], ["<b>b</b>"], [])
    assert page.all("dd") == [*["2026-11-20 12:00 UTC"] * 2, "hello", "One, two · <i>", "https://example.org/a.jpg"]
    assert page.all(".excerpt") == ["Short."]


@cases("path", ["/settings/posts/1", "/settings/posts/1/edit", f"/settings/posts/{10**19 - 1}/edit"])
def test_a_post_that_does_not_exist_is_not_found(owner, path):
    page = view(owner, path)
    assert (page.status, page.all("h1"), page.said[0]) == (404, ["Not found"], "No such post.")


def test_text_is_never_markup(owner, post, database):
    hostile = "<script>alert(1)</script>\"'&amp;{{7*7}}</textarea>"
    post(title=hostile, content=hostile, excerpt=hostile, tags=["<i>", "</textarea>"], slug="a")
    add_key(database, hostile)
    database.write(webhooks.add, "http://8.8.8.8/?<b>", ["ping"])
    for path in (*SECTIONS, "/settings/posts/1", "/settings/posts/1/edit"):
        page = view(owner, path)
        assert page.soup.select("main script, main i") == [], path
    assert view(owner, "/settings/posts").titles == [hostile]
    fields = page.form("Save draft")[1]
    assert [fields[name] for name in ("title", "content", "excerpt")] == [hostile] * 3


NOW, TOMORROW = "2026-11-20T12:00:00Z", "2026-11-21T08:30:00Z"
PUBLISHED, SCHEDULED = {"status": "published"}, {"status": "scheduled", "published_at": TOMORROW}


@pytest.mark.parametrize(
    ("before", "label", "status", "published_at"),
    [
        ({}, "Publish now", "published", NOW),
        ({}, "Archive", "archived", None),
        ({}, "Schedule", "scheduled", TOMORROW),
        (PUBLISHED, "Return to draft", "draft", NOW),
        (PUBLISHED, "Archive", "archived", NOW),
        (SCHEDULED, "Return to draft", "draft", None),
        (SCHEDULED, "Publish now", "published", NOW),
    ],
)
def test_a_change_of_the_status_can_be_undone_exactly(owner, client, post, clock, before, label, status, published_at):
    post(title="Hello")
    old = client.patch("/v1/posts/1", json=before).json
    typed = {"published_at": "2026-11-21T08:30"} if label == "Schedule" else {}
    page = view(owner, "/settings/posts/1").press(label, **typed)
    when = {"scheduled": " Readers will see it on 2026-11-21 08:30 UTC."}
    assert page.said[0] == f"“Hello” is now {'a draft' if status == 'draft' else status}.{when.get(status, '')}"
    new = client.get("/v1/posts/1").json
    assert (new["status"], new.get("published_at")) == (status, published_at)
    clock.now += 60
    page = page.press("Undo")
    assert page.all("h1, .notice p") == [f"Hello {old['status']}", f"Change undone.{when.get(old['status'], '')}"]
    assert client.get("/v1/posts/1").json == old | {"updated_at": "2026-11-20T12:01:00Z"}
    assert view(owner, "/settings/posts/1").all(".notice") == []


@pytest.mark.parametrize("label", ["Publish now", "Archive", "Schedule", "Yes, delete"])
def test_a_button_does_nothing_if_the_post_has_changed_since_it_was_shown(owner, client, post, label):
    post(title="Hello", content="One.")
    page = view(owner, "/settings/posts/1")
    changed = client.patch("/v1/posts/1", json={"content": "Two."}).json
    typed = {"published_at": "2026-11-21T08:30"} if label == "Schedule" else {}
    page = page.press(label, **typed)
    assert (page.status, page.all(".problem h2")) == (412, ["Nothing was done: the post has changed since"])
    assert (page.all(".removed"), page.all(".added")) == (["One."], ["Two."])
    assert client.get("/v1/posts/1").json == changed
    assert page.press(label, **typed).status == 200


@cases("time", ["", "2026-11-20T11:00", "tomorrow", "0001-01-01T00:00:00Z", "tomorrow Z"])
def test_an_impossible_time_is_refused_next_to_its_field_which_keeps_it(owner, client, post, time):
    post_id = post()["id"]
    page = view(owner, f"/settings/posts/{post_id}").press("Schedule", published_at=time)
    assert (page.status, len(page.all(".wrong"))) == (400, 1)
    assert page.form("Schedule")[1]["published_at"].startswith(time.removesuffix("Z"))
    assert client.get(f"/v1/posts/{post_id}").json["status"] == "draft"


@cases(
    ("sent", "reason"),
    ({"to": "x"}, "Status: Must be one of published, draft, scheduled, archived."),
    ({"to": "scheduled", "published_at": "2026-11-20T11:00"}, "Date: Choose a date in the future"),
)
def test_an_impossible_status_is_refused_even_without_its_field(owner, post, sent, reason):
    page = view(owner, f"/settings/posts/{post(status='published')['id']}").press("Archive", **sent)
    (problem,) = page.all(".problem")
    assert (page.status, problem.startswith(f"Nothing was changed. {reason}")) == (400, True), problem
