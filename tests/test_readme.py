"""README's own shell blocks, run against the service that its first one starts; and what it is for, shown whole."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from blogapi.config import Config
from tests.blogs import SAMPLES
from tests.receiver import Receiver
from tests.service import CHECKOUT, Service, eventually, free_port

README = (CHECKOUT / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
ARTICLES = {
    "sourdough.md": ("A sourdough that forgives", "published", ["Baking", "Slow food"]),
    "backups.md": ("Backups for people who hate backups", "draft", ["Self-hosting", "Shell"]),
    "tagebuch.md": ("Drei Tage am Bodensee: ein Tagebuch", "published", ["Reisen", "slow FOOD"]),
}


@pytest.fixture
def running(tmp_path):
    """`make run`, as the README says it; gives what it printed and the environment for other commands."""
    port = free_port()
    environ = os.environ | {
        "PORT": str(port),
        "BLOGAPI_DATABASE": str(tmp_path / "blog.db"),
        "BLOGAPI_WEBHOOK_PRIVATE": "true",
    }
    process = subprocess.Popen(
        ["make", "run"],
        cwd=CHECKOUT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = ""
    while "Booting worker" not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    yield output, environ
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=10)


@pytest.fixture
def home(tmp_path):
    """A home with the blogs of other programs."""
    home = tmp_path / "home"
    shutil.copytree(SAMPLES, home, ignore=shutil.ignore_patterns("broken.md"))
    for name in ("wordpress.xml", "ghost.json"):
        (home / "exports" / name).rename(home / name)
    return home


def shell(block, environ, key):
    """Run a block of the README in a shell; return what it printed."""
    script = block.replace("127.0.0.1:8000", f"127.0.0.1:{environ['PORT']}").replace("blog_…", key)
    script = f"set -eu\nKEY={key}\n{script}".replace(
        "curl ", "curl --silent --show-error --retry-connrefused --retry 9 "
    )
    ended = subprocess.run(
        ["bash", "-c", script], cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_the_readme_says_works(running, tmp_path):
    output, environ = running
    key = re.search(r"blog_[A-Za-z0-9_-]{43}", output)[0]
    assert (BLOCKS[0], BLOCKS[-1]) == ("make run\n", "make test\n")
    create, send, send_all, get, *_, settings, keys, less, backup = BLOCKS[1:-1]
    listing, find, by_date, change, schedule, once, tags, delete = BLOCKS[8:16]

    example = json.loads(re.search(r"```json\n(.*?)```", README, re.DOTALL)[1])
    created = json.loads(shell(create, environ, key))
    assert list(created) == list(example)
    times = dict.fromkeys(("created_at", "published_at", "updated_at"), "")
    assert created | times == example | times
    assert shell(listing, environ, key) == (json.dumps([created], separators=(",", ":")) + "\n") * 2
    assert json.loads(shell(by_date, environ, key)) == [
        {name: created[name] for name in ("title", "slug", "published_at")}
    ]

    content = (CHECKOUT / "tests/articles/sourdough.md").read_text()
    post = json.loads(shell(send, environ, key))
    assert (post["id"], post["slug"], post["status"], post["content"]) == ("2", "sourdough", "draft", content)
    assert json.loads(shell(find, environ, key)) == [post]
    file = shell(get, environ, key)
    assert file.startswith("---\ntitle: ")
    assert file.endswith(f"---\n\n{content}")
    files = [f"tests/articles/{name}.md" for name in ("backups", "sourdough", "tagebuch")]
    statuses = dict.fromkeys(files, "201") | {files[1]: "200"}
    for expected in (statuses, dict.fromkeys(files, "200")):
        assert shell(send_all, environ, key).splitlines() == [f"{expected[name]} {name}" for name in files]

    changed = json.loads(shell(change, environ, key))
    assert changed | times == created | {"title": "Hello again", "excerpt": "A greeting."} | times
    post = json.loads(shell(schedule, environ, key))
    assert (post["status"], post["published_at"]) == ("scheduled", "2099-01-01T07:00:00Z")
    noted = shell(once, environ, key)
    assert shell(once, environ, key) == noted
    assert shell(tags, environ, key) == '[{"name":"News","posts":1}]\n{"name":"What is new?","posts":1}\n'
    assert shell(delete, environ, key) == ""
    listed = json.loads(shell(listing.splitlines()[0], environ, key))
    assert [each["slug"] for each in listed] == ["note", "tagebuch", "backups", "sourdough"]
    assert (listed[0], listed[-1]) == (json.loads(noted), post)

    link = shell(settings, environ, key)
    assert re.fullmatch(rf"http://127\.0\.0\.1:{environ['PORT']}/settings/open\?link=blog_link_[A-Za-z0-9_-]+\n", link)

    made, *table, renewed = shell(keys, environ, key).splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "LAST"], ["first", key[-4:]], ["laptop", made[-4:]]]
    assert made != renewed
    read_only, published_only = shell(less, environ, key).split()
    assert json.loads(shell(listing.splitlines()[0], environ, read_only)) == listed
    assert shell(listing, environ, published_only) == "[]\n" * 2  # All of these are drafts or scheduled.

    backup = backup.replace('"blog-', f'"{tmp_path}/blog-')
    assert shell(backup, environ, key) == ""
    (copy,) = tmp_path.glob("blog-*.db")
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT id FROM post ORDER BY id").fetchall() == [(2,), (3,), (4,), (5,)]


def test_what_the_readme_says_of_moving_here_and_leaving_works(running, home):
    environ = running[1] | {"HOME": str(home)}
    move, dry_run, leave = BLOCKS[5:8]
    summaries = [line for line in shell(move, environ, "").splitlines() if line.startswith("made ")]
    made = [int(re.fullmatch(r"made (\d+), changed 0, unchanged 0, refused 0", line)[1]) for line in summaries]
    assert len(made) == 8
    assert all(made)
    assert set(re.findall(r": would be (\w+)$", shell(dry_run, environ, ""), re.MULTILINE)) == {"unchanged"}
    assert shell(leave, environ, "") == f"written {sum(made)}, unchanged 0, deleted 0\n"
    assert len(list((home / "posts").glob("*.md"))) == sum(made)


def test_what_the_readme_says_of_webhooks_works(running, tmp_path):
    output, environ = running
    key = re.search(r"blog_[A-Za-z0-9_-]{43}", output)[0]
    subscribe, ping, openssl = BLOCKS[16:19]
    check = {}
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], check)
    with Receiver() as receiver:
        webhook = json.loads(shell(subscribe.replace("https://example.org/hook", receiver.url), environ, key))
        ping, deliveries = ping.splitlines()
        pinged = json.loads(shell(ping, environ, key))
        eventually(lambda: json.loads(shell(deliveries, environ, key))[0]["state"] == "delivered")
        shell(BLOCKS[1], environ, key)
        eventually(lambda: len(receiver.messages) == 2)
    assert pinged["id"] == receiver.messages[0].id
    assert receiver.types == ["ping", "post.published"]
    for message in receiver.messages:
        assert check["is_genuine"](webhook["secret"], message.headers, message.body)
        assert not check["is_genuine"](webhook["secret"], message.headers, message.body + b" ")
        (tmp_path / "body.json").write_bytes(message.body)
        variables = {
            "SECRET": webhook["secret"],
            "WEBHOOK_ID": message.id,
            "WEBHOOK_TIMESTAMP": message.headers["webhook-timestamp"],
        }
        printed = shell(openssl.replace("body.json", str(tmp_path / "body.json")), environ | variables, key)
        assert printed == message.headers["webhook-signature"]


def test_the_curl_line_that_the_service_prints_can_be_pasted(running):
    output, environ = running
    line = re.search(r"^ +(curl .*)$", output, re.MULTILINE)[1]
    post = json.loads(shell(line, environ, "unused"))
    assert (post["id"], post["title"], post["status"]) == ("1", "Hello", "published")


def test_three_articles_are_created_listed_and_deleted(tmp_path):
    with Service(tmp_path / "blog.db") as service:
        posts = {}
        for name, (title, status, tags) in ARTICLES.items():
            content = (CHECKOUT / "tests/articles" / name).read_text()
            fields = {"title": title, "content": content, "status": status, "tags": tags}
            answer, _, posts[name] = service.request("POST", "/v1/posts", fields)
            assert answer == 201
            assert posts[name].items() >= fields.items()

        def listed(query):
            return service.request("GET", f"/v1/posts{query}")[2]

        sourdough, backups, tagebuch = posts.values()
        assert listed("") == [tagebuch, backups, sourdough]
        assert listed("?status=draft") == [backups]
        assert listed("?tag=SLOW+FOOD") == [tagebuch, sourdough]
        assert listed("?tag=reisen&status=published") == [tagebuch]
        for post in posts.values():
            assert service.request("DELETE", f"/v1/posts/{post['id']}")[0] == 204
        assert listed("") == []


def test_the_readme_names_every_setting():
    settings = re.findall(r"^\| `(HOST|PORT|BLOGAPI_\w+)` \|", README, re.MULTILINE)
    assert settings == list(Config.variables())
