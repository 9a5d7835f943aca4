"""The blocks of README and of the pages under docs/, run as they stand there; and what it is for, shown whole.

Those of docs/examples.md are in test_examples.py.
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from contextlib import ExitStack, closing

import pytest
import yaml

from blogapi.config import Config
from blogapi.storage.sqlite import Sqlite
from tests.blogs import SAMPLES
from tests.pages import NAMES, Page
from tests.receiver import Receiver
from tests.service import BIN, CHECKOUT, Server, eventually, free_port

README = Page("README.md")
MAKE_RUN, CREATE = README.take("blogapi")
(CREATED,) = README.take("blogapi", "json")
SEND, SEND_ALL, GET = README.take("Posts as files")
MOVE, DRY_RUN = README.take("Moving here")
LISTING, BY_DATE, FIND, LEAVE = README.take("A site")
KEYS, LESS = README.take("Keys")
SUBSCRIBE, PING = README.take("Webhooks")
(SETTINGS,) = README.take("The owner's page")
(MAKE_TEST,) = README.take("And then")

REFERENCE = Page("docs/reference.md")
CHANGE, SCHEDULE, DELETE = REFERENCE.take("Changing a post")
(ONCE,) = REFERENCE.take("Asking and trying again")
(TAGS,) = REFERENCE.take("Tags")

WEBHOOKS = Page("docs/webhooks.md")
(OPENSSL,) = WEBHOOKS.take("Who sent it")
(IS_GENUINE,) = WEBHOOKS.take("Who sent it", "python")

RUNNING = Page("docs/running.md")
(PROXY,) = RUNNING.take("A proxy", "")
(HEALTH,) = RUNNING.take("Health")
(SCRAPE,) = RUNNING.take("Metrics", "yaml")

BACKUPS = Page("docs/backups.md")
(BACKUP,) = BACKUPS.take("Backups")

UPGRADING = Page("docs/upgrading.md")
(UPGRADE,) = UPGRADING.take("What happens to the database")

ARTICLES = {
    "sourdough.md": ("A sourdough that forgives", "published", ["Baking", "Slow food"]),
    "backups.md": ("Backups for people who hate backups", "draft", ["Self-hosting", "Shell"]),
    "tagebuch.md": ("Drei Tage am Bodensee: ein Tagebuch", "published", ["Reisen", "slow FOOD"]),
}
TIMES = dict.fromkeys(("created_at", "published_at", "updated_at"), "")


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
        MAKE_RUN.split(),
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
def key(running):
    """The first key, which `make run` has printed."""
    return re.search(r"blog_[A-Za-z0-9_-]{43}", running[0])[0]


@pytest.fixture
def home(tmp_path):
    """A home with the blogs of other programs."""
    home = tmp_path / "home"
    shutil.copytree(SAMPLES, home, ignore=shutil.ignore_patterns("broken.md"))
    for name in ("wordpress.xml", "ghost.json"):
        (home / "exports" / name).rename(home / name)
    return home


def shell(block, environ, key):
    """Run a block in a shell; return what it printed."""
    script = block.replace("127.0.0.1:8000", f"127.0.0.1:{environ['PORT']}").replace("blog_…", key)
    script = f"set -eu\nKEY={key}\n{script}".replace(
        "curl ", "curl --silent --show-error --retry-connrefused --retry 9 "
    )
    ended = subprocess.run(
        ["bash", "-c", script], cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_the_readme_says_of_posts_works(running, key):
    _, environ = running
    example = json.loads(CREATED)
    created = json.loads(shell(CREATE, environ, key))
    assert list(created) == list(example)
    assert created | TIMES == example | TIMES
    assert shell(LISTING, environ, key) == (json.dumps([created], separators=(",", ":")) + "\n") * 2
    assert json.loads(shell(BY_DATE, environ, key)) == [
        {name: created[name] for name in ("title", "slug", "published_at")}
    ]

    content = (CHECKOUT / "tests/articles/sourdough.md").read_text()
    post = json.loads(shell(SEND, environ, key))
    assert (post["id"], post["slug"], post["status"], post["content"]) == ("2", "sourdough", "draft", content)
    assert json.loads(shell(FIND, environ, key)) == [post]
    file = shell(GET, environ, key)
    assert file.startswith("---\ntitle: ")
    assert file.endswith(f"---\n\n{content}")
    files = [f"tests/articles/{name}.md" for name in ("backups", "sourdough", "tagebuch")]
    statuses = dict.fromkeys(files, "201") | {files[1]: "200"}
    for expected in (statuses, dict.fromkeys(files, "200")):
        assert shell(SEND_ALL, environ, key).splitlines() == [f"{expected[name]} {name}" for name in files]
    listed = json.loads(shell(LISTING.splitlines()[0], environ, key))
    assert [each["slug"] for each in listed] == ["tagebuch", "backups", "sourdough", "hello"]
    assert listed[2:] == [post, created]


def test_what_the_reference_says_works(running, key):
    _, environ = running
    created = json.loads(shell(CREATE, environ, key))
    shell(SEND, environ, key)
    changed = json.loads(shell(CHANGE, environ, key))
    assert changed | TIMES == created | {"title": "Hello again", "excerpt": "A greeting."} | TIMES
    post = json.loads(shell(SCHEDULE, environ, key))
    assert (post["status"], post["published_at"]) == ("scheduled", "2099-01-01T07:00:00Z")
    noted = shell(ONCE, environ, key)
    assert shell(ONCE, environ, key) == noted
    assert shell(TAGS, environ, key) == '[{"name":"News","posts":1}]\n{"name":"What is new?","posts":1}\n'
    assert shell(DELETE, environ, key) == ""
    assert json.loads(shell(LISTING.splitlines()[0], environ, key)) == [json.loads(noted), post]


def test_what_the_readme_says_of_keys_and_the_owners_page_works(running, key):
    _, environ = running
    shell(SEND_ALL, environ, key)  # drafts
    shell(SCHEDULE, environ, key)
    made, *table, renewed = shell(KEYS, environ, key).splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "LAST"], ["first", key[-4:]], ["laptop", made[-4:]]]
    assert made != renewed
    read_only, published_only = shell(LESS, environ, key).split()
    listed = shell(LISTING.splitlines()[0], environ, key)
    assert [post["status"] for post in json.loads(listed)] == ["draft", "scheduled", "draft"]
    assert shell(LISTING.splitlines()[0], environ, read_only) == listed
    assert shell(LISTING, environ, published_only) == "[]\n" * 2

    link = shell(SETTINGS, environ, key)
    assert re.fullmatch(rf"http://127\.0\.0\.1:{environ['PORT']}/settings/open\?link=blog_link_[A-Za-z0-9_-]+\n", link)


def test_what_the_readme_says_of_moving_here_and_leaving_works(running, home):
    environ = running[1] | {"HOME": str(home)}
    summaries = [line for line in shell(MOVE, environ, "").splitlines() if line.startswith("made ")]
    made = [int(re.fullmatch(r"made (\d+), changed 0, unchanged 0, refused 0", line)[1]) for line in summaries]
    assert len(made) == 8
    assert all(made)
    assert set(re.findall(r": would be (\w+)$", shell(DRY_RUN, environ, ""), re.MULTILINE)) == {"unchanged"}
    assert shell(LEAVE, environ, "") == f"written {sum(made)}, unchanged 0, deleted 0\n"
    assert len(list((home / "posts").glob("*.md"))) == sum(made)


def test_what_is_said_of_webhooks_works(running, key, tmp_path):
    _, environ = running
    check = {}
    exec(IS_GENUINE, check)
    with Receiver() as receiver:
        webhook = json.loads(shell(SUBSCRIBE.replace("https://example.org/hook", receiver.url), environ, key))
        ping, deliveries = PING.splitlines()
        pinged = json.loads(shell(ping, environ, key))
        eventually(lambda: json.loads(shell(deliveries, environ, key))[0]["state"] == "delivered")
        shell(CREATE, environ, key)
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
        printed = shell(OPENSSL.replace("body.json", str(tmp_path / "body.json")), environ | variables, key)
        assert printed == message.headers["webhook-signature"]


def test_the_curl_line_that_the_service_prints_can_be_pasted(running):
    output, environ = running
    line = re.search(r"^ +(curl .*)$", output, re.MULTILINE)[1]
    post = json.loads(shell(line, environ, "unused"))
    assert (post["id"], post["title"], post["status"]) == ("1", "Hello", "published")


def test_three_articles_are_created_listed_and_deleted(tmp_path):
    with Server(tmp_path / "blog.db") as service:
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


def test_what_is_said_of_health_metrics_and_backups_works(running, key, tmp_path):
    _, environ = running
    shell(SEND, environ, key)
    assert shell(HEALTH, environ, key) == '{"status":"ok"}\n'

    (job,) = yaml.safe_load(SCRAPE.replace("blog_…", key))["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    metrics = shell(
        f'curl -f http://{target}/metrics --oauth2-bearer "{job["authorization"]["credentials"]}"', environ, ""
    )
    assert 'blogapi_requests_total{operation="put_post",status="201"} 1.0' in metrics

    backup = BACKUP.replace('"blog-', f'"{tmp_path}/blog-')
    assert shell(backup, environ, key) == ""
    (copy,) = tmp_path.glob("blog-*.db")
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT slug FROM post").fetchall() == [("sourdough",)]


def test_what_is_said_of_upgrading_works(tmp_path):
    database, copy = tmp_path / "blog.db", tmp_path / "copy.db"
    Sqlite(database).open()
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("UPDATE search_made SET unicode = '1.0'")
    environ = os.environ | {"BLOGAPI_DATABASE": str(database), "PORT": str(free_port())}

    def listing():
        command = [BIN / "blogapi", "keys", "list"]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30)

    refused = listing()
    assert refused.returncode == 1
    assert refused.stderr.endswith("another Python has indexed its words; blogapi init indexes them again\n")
    assert shell(f".venv/bin/blogapi backup {copy}", environ, "") == ""
    shell(UPGRADE, environ, "")
    assert listing().returncode == 0


def test_the_caddyfile_is_the_one_that_the_page_shows():
    caddyfile = (CHECKOUT / "Caddyfile").read_text()
    assert (
        caddyfile.replace("{$DOMAIN}", "blog.example.org").replace("{$BACKEND:127.0.0.1:8000}", "127.0.0.1:8000")
        == PROXY
    )


@pytest.fixture
def caddy(tmp_path):
    """Start Caddy with the project's Caddyfile in front of some addresses; give its port."""
    if not shutil.which("caddy"):
        pytest.skip("caddy is not there")
    port = free_port()
    environ = {"DOMAIN": f"http://127.0.0.1:{port}", "CADDY_ADMIN": f"unix/{tmp_path}/admin", "HOME": str(tmp_path)}
    with ExitStack() as stack:

        def start(*backends):
            log = stack.enter_context((tmp_path / "caddy.log").open("w"))
            command = ["caddy", "run", "--config", CHECKOUT / "Caddyfile"]
            process = subprocess.Popen(command, env=os.environ | environ | {"BACKEND": " ".join(backends)}, stderr=log)
            stack.callback(process.wait, 10)
            stack.callback(process.terminate)
            return port

        yield start


@pytest.fixture
def behind(tmp_path, caddy):
    """Let a service be reached through Caddy, which knows other addresses, too."""
    with Server(tmp_path / "blog.db") as service:
        direct = service.port

        def start(*others):
            service.port = caddy(*others, f"127.0.0.1:{direct}")
            eventually(service.answers)
            return service

        yield start
        service.port = direct


def test_a_compressed_answer_can_be_changed_behind_caddy(behind):
    service = behind()
    service.request("POST", "/v1/posts", {"title": "A", "content": "word " * 1000})
    etag = service.request("GET", "/v1/posts/1", Accept_Encoding="identity")[1]["ETag"]
    compressed = etag[:-1] + '-gzip"'  # as newer versions of Caddy have it
    change = ("PATCH", "/v1/posts/1", {"title": "B"})
    assert service.request(*change, If_Match=compressed)[0] == 200
    assert service.request(*change, If_Match=compressed)[0] == 412
    headers = service.request("HEAD", "/v1/posts/1", Accept_Encoding="gzip")[1]
    assert headers["Content-Encoding"] == "gzip"
    assert service.request(*change, If_Match=headers["ETag"])[0] == 200


def test_behind_caddy_nobody_notices_that_one_of_several_services_is_down(behind):
    service = behind(f"127.0.0.1:{free_port()}")
    for _ in range(20):  # Not POST: older versions of Caddy have closed the body when they try again.
        assert service.request("GET", "/v1/posts")[0] == 200


def test_a_container_is_built_from_all_that_it_copies_and_nothing_else():
    copied = re.findall(r"^COPY (.+) \S+$", (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE)
    patterns = " ".join(copied).replace("${REQUIREMENTS}", "requirements.txt requirements-postgresql.txt").split()
    allowed = re.findall("^!(.+)$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE)
    assert {path.name for pattern in patterns for path in CHECKOUT.glob(pattern)} == {*allowed}


@pytest.mark.parametrize("page", [README, REFERENCE, WEBHOOKS, RUNNING, BACKUPS, UPGRADING])
def test_every_block_is_run(page):
    assert MAKE_TEST == "make test\n"  # which is what runs this
    assert page.forgotten == []


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_a_heading_that_is_there(name):
    for target, anchor in Page(name).links:
        path = (CHECKOUT / name).parent / target if target else CHECKOUT / name
        assert path.is_file(), target
        assert not anchor or anchor in Page(path).anchors, f"{target}#{anchor}"


def test_the_readme_leads_to_every_page():
    assert {name for name in NAMES if name.startswith("docs/")} <= {target for target, _ in README.links}


def test_the_pages_name_every_setting():
    settings = re.findall(
        r"^\| `(HOST|PORT|WEB_CONCURRENCY|BLOGAPI_\w+)` \|", Page("docs/settings.md").text, re.MULTILINE
    )
    assert settings == list(Config.variables())
