"""A script that went wrong, undone as its user would, while the server runs."""

import time

from blogapi.clock import rfc3339
from tests.invariants import sound_posts
from tests.service import eventually

SLUGS = [f"post-{number}" for number in range(300)]
OVERWRITTEN, DELETED = SLUGS[:200], SLUGS[200:250]
EDITED = SLUGS[95:105]


def test_of_300_posts_all_that_a_loop_did_is_undone_but_for_ten_that_another_key_edited(service):
    loop, editor = (service.blogapi("keys", "create", name).stdout.strip() for name in ("loop", "editor"))

    def send(key, method, slug, body=None):
        status, headers, post = service.request(
            method, f"/v1/posts/by-slug/{slug}", body, Authorization=f"Bearer {key}"
        )
        assert status in (200, 201, 204), post
        return headers.get("ETag"), {**(post or {}), "updated_at": ""}

    for number, slug in enumerate(SLUGS):
        status = "published" if number % 2 else "draft"
        post = {"title": f"Post {number}", "content": f"{number}\n", "status": status, "tags": ["a", "b"]}
        send(service.key, "PUT", slug, post)
    before = {slug: send(service.key, "GET", slug) for slug in SLUGS}
    since = rfc3339(time.time() + 1)
    eventually(lambda: rfc3339(time.time()) >= since)
    for slug in OVERWRITTEN:
        send(loop, "PUT", slug, {"title": "undefined", "content": "undefined", "tags": ["undefined"]})
    for slug in DELETED:
        send(loop, "DELETE", slug)
    for slug in EDITED:
        send(editor, "PATCH", slug, {"excerpt": "Edited."})
    edited = {slug: send(service.key, "GET", slug) for slug in EDITED}

    ended = service.blogapi("undo", "--since", since, "--key", "loop")
    *lines, summary = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (1, "")
    assert summary == "changed back 190, restored 50, moved to the trash 0, left 10"
    left = [line for line in lines if "left" in line]
    posts = [before[slug][1] for slug in EDITED]
    assert sorted(left) == sorted(f"{post['id']} “{post['title']}”: left, editor changed it since" for post in posts)

    after = {slug: send(service.key, "GET", slug) for slug in SLUGS}
    assert {slug: post for slug, (_, post) in after.items()} == {
        slug: post for slug, (_, post) in (before | edited).items()
    }
    untouched = SLUGS[250:] + EDITED
    assert [after[slug][0] for slug in untouched] == [(before | edited)[slug][0] for slug in untouched]
    assert len(sound_posts(service.database)) == 300
    again = service.blogapi("undo", "--since", since, "--key", "loop").stdout.splitlines()
    assert again == [*left, "changed back 0, restored 0, moved to the trash 0, left 10"]
