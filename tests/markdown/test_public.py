"""What hides a post: the words of many programs, and other names with the same meaning."""

from blogapi.markdown.front_matter import read_toml, read_yaml
from blogapi.markdown.public import Inherited, hides, why_hidden, without_passwords

NOW = "2026-11-20T12:00:00Z"

HIDDEN = """
draft: true | isDraft: true | is_draft: "yes" | draft: 1 | wip: true | unfinished: true | published: false
publish: false | is_published: false | dg-publish: false | public: false | isPublic: no | publish: never
publish: later
private: true | isPrivate: true | private: friends | hidden: true | secret: true | unlisted: true | unpublished: true
hiddenFromHomePage: true | hiddenInHomeList: true | bookHidden: true | hide: true | hide_from_list: true
delisted: true
visible: false | active: false | listed: false | render: false | output: false | enabled: false | show: false
live: false
show_in_list: false | permalink: false | eleventyExcludeFromCollections: true | eleventyExcludeFromCollections: [posts]
excludeFromFeed: true | exclude_from_home: true | ignorePost: true | skip: true | exclude: true | disabled: true
password: abc | Password: 1234 | post_password: x | passphrase: x | encrypt: true | password: {a: b} | pwd: x
passcode: 1
visibility: private | visibility: members | visibility: paid | visibility: tiers | visibility: none | privacy: friends
access: members | audience: only_paid | members_only: true | premium: true | paid: true | isPaid: true
login_required: true
status: private | status: hidden | status: unpublished | Status: Draft | status: wip | status: trash | state: draft
post_status: pending | status: in progress | type: draft | stage: draft | audience: paid-subscribers
expiryDate: 2020-01-01 | expires: 2026-11-20T11:00:00Z | expired: true | expiry: who knows | unpublish_date: 2020-01-01
_expiration-date: 1577836800 | publishUntil: 2020-01-01 | publish_down: 2020-01-01 00:00:00 | headless: true
build: {render: never} | _build: {list: never} | _build: {list: local} | build: {render: link} | _build: {render: false}
params: {private: true} | extra: {hidden: true} | extra: {password: x} | tags: [bread, draft] | tags: rye, private
confidential: true | internal: true | restricted: true | embargoed: true | deleted: true | headless: "on" | wip: 50%
publish_on: 2099-01-02 | embargo_until: 2026-11-20T13:00:00Z | scheduled: 2099-01-02 | available_from: 2099-01-02
publish_on: 03/05/2099 | audience: only_free | layout: false | visible: none | routable: false | newsletter_only: true
restrict_to: [family] | groups: [family] | access: {site.login: true} | metadata: {published: false} | lock: x
title: "[DRAFT] Rye" | title: "WIP: Rye" | title: Rye (draft)
status: sent | email_only: true | layout: draft | can_view: [alice]
entwurf: true | brouillon: true | 下書き: true | status: Entwurf | acl: private | permissions: private
"""
SHOWN = """
draft: false | published: true | published: 2020-01-02 | publish: true | public: yes | private: false | hidden: no
hidden: | password: | password: "" | password: false | password: null | encrypt: false | visibility: public
access: all
status: published | status: publish | expiryDate: 2030-01-01 | expires: never
sitemap: false | hide_title: true | hideToc: true | hideMeta: true | cover: {hidden: true} | hide: [navigation, toc]
comments: false | hideComments: true | comments_hidden: true | toc: false | showToc: false | show_date: false
share: false
search_exclude: true | nav_exclude: true | hideFromHashnodeCommunity: true | hidden_tags: [a] | private_notes: we met
publisher: O'Reilly | passage: a | compass: north | layout: post | permalink: /a/ | sticky: true
audience: beginners | audience: everyone | type: post | kind: article | eleventyExcludeFromCollections: false
build: {publishResources: false} | build: {render: always, list: always} | params: {hide_title: true} | active: true
publish_on: 2020-01-02 | publishDate: 2099-01-02 | release: 2.0 | scheduled: true | entwurf: false | acl: public
permalink: none | permalink: date | layout: none | noindex: true | robots: [noindex] | seo: {noindex: true}
title: Drafting a contract
description: draft | title: Private | tags: [privacy, drafting] | summary: hidden | author: Secret | lastmod: 2020-01-01
"""


def every(table):
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def test_a_post_is_public_only_if_no_word_of_any_program_says_otherwise():
    for text in every(HIDDEN):
        assert why_hidden(read_yaml(text)[0], (), NOW), text
    for text in every(SHOWN):
        assert why_hidden(read_yaml(text)[0], (), NOW) == "", text
    for text in ("draft = true", "expiryDate = 2020-01-01", "[_build]\nrender = 'never'", "[extra]\nhidden = true"):
        assert why_hidden(read_toml(text)[0], (), NOW), text
    assert why_hidden(read_toml("draft = false\nexpiryDate = 2030-01-01")[0], (), NOW) == ""


def test_the_reason_names_the_word_and_no_password():
    reasons = {
        "unlisted: true": "unlisted: true",
        "password: hunter2": "password",
        "secret: hunter2": "secret",
        "private: true": "private: true",
        "extra: {pwd: hunter2}": "extra.pwd",
        "build: {list: never}": "build.list: never",
        "tags: [Private]": "the tag private",
        f"private: {'x' * 100}": "private",
        f"status: {'draft'}": "status: draft",
    }
    for text, why in reasons.items():
        assert why_hidden(read_yaml(text)[0], (), NOW) == why, text


def test_data_of_folders_hide_a_post_unless_it_says_otherwise_where_that_counts():
    folder = Inherited("posts.json", {"draft": True})
    assert why_hidden({}, [folder], NOW) == "draft: True in posts.json"
    assert why_hidden({"Draft": "false"}, [folder], NOW) == ""
    assert why_hidden({"published": "true"}, [folder], NOW)
    section = Inherited("_index.md", {"draft": "true"}, is_default=False)
    assert why_hidden({"draft": "false"}, [section], NOW) == "draft: true in _index.md"
    unreadable = Inherited("posts.json", why="posts.json cannot be read")
    assert why_hidden({}, [unreadable], NOW) == "posts.json cannot be read"


def test_passwords_are_removed_at_any_depth_and_nothing_else():
    params = {
        "password": "x",
        "a": [{"Pass-Phrase": "y", "b": 1}],
        "secret": "hunter2",
        "private": True,
        "compass": "n",
    }
    assert without_passwords(params) == {"a": [{"b": 1}], "private": True, "compass": "n"}


def test_long_names_and_values_take_no_time():
    for name, value in (("x" * 1_000_000, "true"), ("hidden", "x" * 1_000_000), ("status", "draft " * 100_000)):
        assert isinstance(hides(name, value), bool)
    assert why_hidden({f"hide{number}": "true" for number in range(5000)}, (), NOW)
