"""Jekyll blogs: their tags, and the old URLs of posts, even from other programs."""

from blogapi.config import zone_named
from tests.blogs import read
from tests.cases import cases


@cases(
    ("folder", "text", "tags"),
    ("_posts", "tags: cats dogs\ncategories: jekyll update", ["cats", "dogs", "jekyll", "update"]),
    ("news/_drafts", "tags: cats  dogs", ["cats", "dogs"]),
    ("_posts", "tags: big cats, dogs", ["big cats", "dogs"]),
    ("_posts", "tags: [big cats]\ncategory: jekyll update", ["big cats", "jekyll update"]),
    ("_posts", "tag: big cats\ncategory: code", ["big cats", "code"]),
    ("posts", "tags: cats dogs", ["cats dogs"]),
)
def test_only_jekyll_tags_are_split_at_spaces(item, folder, text, tags):
    assert item(text, f"{folder}/2020-01-02-a.md").fields["tags"] == tags


DATED = "date: 2020-01-02 03:04:05 +0500\ncategories: News Big-News"
DEFAULT_PATTERN = ("title: x", "permalink: /:unknown/:title", "permalink: [")
DEFAULTS = "defaults: [{scope: {path: '', type: posts}, values: {permalink: /news/:title/}}]"


@cases(
    ("config", "options", "text", "path"),
    ("", {}, DATED, "/news/big-news/2020/01/02/A_b.html"),
    *((config, {}, DATED, "/x/news/big-news/2020/01/02/A_b.html") for config in DEFAULT_PATTERN),
    ("permalink: pretty", {}, DATED, "/x/news/big-news/2020/01/02/A_b/"),
    (f"permalink: none\n{DEFAULTS}", {}, DATED, "/news/A_b/"),
    ("permalink: none", {}, DATED, "/x/news/big-news/A_b.html"),
    ("permalink: /:year-:i_month/:slug:output_ext", {}, DATED, "/2020-1/a-b.html"),
    ("permalink: pretty", {"permalink": "/:y_day/:title"}, DATED, "/002/A_b"),
    ("", {"permalink": "/:y_day/:title"}, f"{DATED}\npermalink: /p/:day/:title", "/p/02/A_b"),
    ("", {}, f"{DATED}\npermalink: /p/", "/p/"),
    ("", {}, "slug: own\ncategory: a b", "/a b/2020/01/02/own.html"),
    ("", {}, "published: false", None),
)
def test_the_former_address_of_a_post_follows_its_sites_pattern(item, config, options, text, path):
    others = {"_config.yml": config} if config else {}
    old_paths = item(text, "x/_posts/2020-01-02-A_b.md", others=others, **options).old_paths
    assert next((old for old in old_paths if "/" in old[1:]), None) == path


def test_a_pattern_works_for_other_sites_too(write):
    top = write({"2020-01-02-a.md": "A", "b.md": "---\ndate: 2020-01-02\n---\nB", "c.md": "C"})
    items = read(top, permalink="/:year/:title/")
    assert {item.fields["slug"]: item.old_paths for item in items} == {"a": ("/2020/a/",), "b": ("/2020/b/",), "c": ()}


def test_folders_above_posts_are_categories_and_those_below_are_not(item):
    found = item("", "es/_posts/2020/2020-01-02-a.md", others={"_config.yml": ""})
    assert found.old_paths == ("/es/2020/01/02/a.html",)


@cases(
    ("config", "text", "name", "options", "former"),
    ("", "redirect_from: [/2020/01/02/old.html, /2020/01/02/a.html, /old/, /2019/01/02/b]", "", {}, ["old", "a"]),
    ("", "redirect_from: /2020/01/02/Old_Name.html", "", {}, None),
    ("permalink: /blog/:title/", "redirect_from:\n  - /blog/old/\n  - /old/", "", {}, ["old"]),
    ("", "permalink: /p/new/\nredirect_from: [/p/old, 'https://old.example/p/older/?x']", "", {}, ["old", "older"]),
    ("", "aliases: [/posts/old/, /old/, /posts/b/old]", "content/posts/new.md", {}, ["old"]),
    ("", "aliases: [/posts/old/, old]", "content/posts/new/index.md", {}, ["old"]),
    ("", "aliases: [/posts/old/]", "new.md", {}, None),
    ("", "aliases: [/posts/old/]", "new.md", {"post_url": "https://b.example/posts/{slug}/"}, ["old"]),
    ("", "former_slugs: [one]\naliases: [/two]", "new.md", {}, ["one", "two"]),
)
def test_addresses_that_differ_only_in_the_slug_are_former_slugs(item, config, text, name, options, former):
    others = {"_config.yml": config} if config else {}
    found = item(text, name or "_posts/2020-01-02-new.md", others=others, **options)
    assert found.fields.get("former_slugs") == former


@cases(
    ("text", "name", "old_paths"),
    ("aliases: [/old/a, other]", "a.md", ("/old/a",)),
    ("aliases: [A name, B]", "a.md", ()),
    ("redirect_from: /old/\npermalink: /2019/a/", "a.md", ("/2019/a/", "/old/")),
    ("slug: my_post", "a.md", ("/my_post",)),
    ("", "2020-01-02-Some_Title.md", ("/Some_Title",)),
)
def test_former_addresses_are_kept(item, text, name, old_paths):
    assert item(f"title: A\n{text}", name).old_paths == old_paths


@cases(
    ("configuration", "name"),
    ("timezone: Asia/Tokyo", "_config.yml"),
    ("title: x\ntimezone:   'Asia/Tokyo' # ours", "_config.yml"),
    ("timeZone = 'Asia/Tokyo'", "hugo.toml"),
    ('timezone = "Asia/Tokyo"', "config.toml"),
    ("timeZone: Asia/Tokyo", "hugo.yaml"),
    ("timeZone = 'Asia/Tokyo'", "config/_default/hugo.toml"),
    ("SITENAME = 'Rye'\nTIMEZONE = \"Asia/Tokyo\"  # where we live", "pelicanconf.py"),
)
def test_the_zone_of_a_site_takes_precedence(item, configuration, name):
    site = {"others": {name: configuration}, "zone": zone_named("Europe/Berlin")}
    zoned = "2020-07-01T23:00:00Z"
    found = item("title: A\ndate: 2020-07-02 08:00", "content/a.md", **site)
    assert (found.fields["published_at"], found.notes) == (zoned, {})
    assert item("date: 2020-07-02 08:00 +0900", "content/a.md", **site).fields["published_at"] == zoned


@cases(
    ("configuration", "name", "is_named"),
    ("", "hugo.toml", False),
    ("timeZone = 'Mars/Base'", "hugo.toml", True),
    ("[params]\ntimezone = 'Asia/Tokyo'", "hugo.toml", False),
    ("TIMEZONE = os.environ['TZ']", "pelicanconf.py", True),
    ("# TIMEZONE = 'Asia/Tokyo'", "pelicanconf.py", False),
)
def test_without_a_known_zone_the_zone_of_the_service_applies(item, configuration, name, is_named):
    found = item("date: 2020-07-02", others={name: configuration}, zone=zone_named("Europe/Berlin"))
    assert found.fields["published_at"] == "2020-07-01T22:00:00Z"
    assert ("time zones" in found.notes) == is_named


@cases("text", ["permalink: /:title\ntimezone:" + " " * 2_000_000, "a: [", "\0"])
def test_the_posts_of_a_site_are_drafts_if_its_configuration_is_too_large_or_invalid(item, text):
    found = item("title: A\ndate: 2020-07-02", "_posts/a.md", others={"_config.yml": text})
    assert found.fields["published_at"] == "2020-07-02T00:00:00Z"
    assert found.old_paths == ("/2020/07/02/a.html",)
    hidden = (None, "_config.yml cannot be read")
    assert (found.fields["status"], found.notes) == ("draft", {"time zones": None, "hidden": hidden})
