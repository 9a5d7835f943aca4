"""The blocks in README and the pages under docs/, run exactly as written.

Those of docs/examples.md are in test_examples.py.
"""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from tests.blogs import SAMPLES, write_files
from tests.databases import execute
from tests.images.pictures import jpeg
from tests.outside.conftest import shell
from tests.pages import Page
from tests.receiver import Receiver
from tests.service import CHECKOUT, eventually, free_port
from tests.transfer.conftest import ATOM, ENTRY, MEDIUM, SUBSTACK, TAKEOUT

pytestmark = pytest.mark.slow

README = Page("README.md")
RUN, CREATE = README.take("blogapi")
(CREATED,) = README.take("blogapi", "json")
PUSH, SEND_ALL, GET = README.take("Posts as files")
SEND = SEND_ALL.replace("*.md", "sourdough.md")
(UPLOAD,) = README.take("Images")
UNDO, REVISIONS, TRASH, FOR_GOOD = README.take("Undoing mistakes")
(IMPORT,) = README.take("Importing a blog")
LISTING, BY_DATE, FIND = README.take("Reading posts")
(LEAVE,) = README.take("Exporting")
KEYS, LESS = README.take("Keys")
SUBSCRIBE, PING = README.take("Webhooks")
(SETTINGS,) = README.take("The owner's page")
(SYNC,) = Page("docs/syncing.md").take("Push and pull")

REFERENCE = Page("docs/reference.md")
CHANGE, SCHEDULE, DELETE = REFERENCE.take("Changing a post")
(PUT_BACK,) = REFERENCE.take("History and trash")
(PROPOSED, APPLIED), (PROPOSAL,) = REFERENCE.take("Proposals"), REFERENCE.take("Proposals", "json")
(ONCE,) = REFERENCE.take("Caching, conflicts and retries")
(TAGS,) = REFERENCE.take("Tags")

WEBHOOKS = Page("docs/webhooks.md")
(OPENSSL,) = WEBHOOKS.take("Verifying")
(IS_GENUINE,) = WEBHOOKS.take("Verifying", "python")

RUNNING = Page("docs/running.md")
(HEALTH,) = RUNNING.take("Health")
SCRAPE, ALERTS = RUNNING.take("Metrics", "yaml")
(DOCTOR,) = RUNNING.take("Troubleshooting")

MOVE, DRY_RUN = Page("docs/importing.md").take("Importing a blog")

IMAGES = Page("docs/images.md")
UPLOADS = IMAGES.take("Images")

MICROPUB = Page("docs/micropub.md")
(NOTES,) = MICROPUB.take("Shortcuts and curl")

BACKUPS = Page("docs/backups.md")
(BACKUP,) = BACKUPS.take("Backups")

BLOGGER = "http://schemas.google.com/blogger/2018"
TIMES = dict.fromkeys(("created_at", "published_at", "updated_at"), "")


def test_the_readme_commands_for_posts_work(sh):
    example = json.loads(CREATED)
    created = json.loads(sh(CREATE))
    assert list(created) == list(example)
    assert created | TIMES == example | TIMES
    assert sh(LISTING) == (json.dumps([created], separators=(",", ":")) + "\n") * 2
    listed = "id", "title", "status", "slug", "published_at"
    assert json.loads(sh(BY_DATE)) == [{name: created[name] for name in listed}]

    content = (CHECKOUT / "tests/articles/sourdough.md").read_text()
    assert sh(SEND) == "201 tests/articles/sourdough.md\n"
    (post,) = json.loads(sh(FIND))
    assert (post["id"], post["slug"], post["status"], post["content"]) == ("2", "sourdough", "draft", content)
    file = sh(GET)
    assert file.startswith("---\ntitle: ")
    assert file.endswith(f"---\n\n{content}")
    files = [f"tests/articles/{name}.md" for name in ("backups", "sourdough", "tagebuch")]
    statuses = dict.fromkeys(files, "201") | {files[1]: "200"}
    for expected in (statuses, dict.fromkeys(files, "200")):
        assert sh(SEND_ALL).splitlines() == [f"{expected[name]} {name}" for name in files]
    listed = json.loads(sh(LISTING.splitlines()[0]))
    assert [each["slug"] for each in listed] == ["tagebuch", "backups", "sourdough", "hello"]
    assert listed[2:] == [post, created]


def test_the_readme_commands_for_push_and_pull_work(sh, tmp_path):
    shutil.copytree(CHECKOUT / "tests/articles", tmp_path / "articles")
    unchanged = "created 0, updated 0, unchanged 3, conflict 0, failed 0"
    first = sh(PUSH, HOME=str(tmp_path)).splitlines()
    assert first[-2:] == ["created 3, updated 0, unchanged 0, conflict 0, failed 0", unchanged]
    assert sh(SYNC, HOME=str(tmp_path)).splitlines()[-1] == unchanged


def test_the_reference_works(sh, service):
    created = json.loads(sh(CREATE))
    proposal, described = json.loads(sh(PROPOSED, AGENT=service.key)), json.loads(PROPOSAL)
    assert (list(proposal), proposal["changes"]) == (list(described), described["changes"])
    assert json.loads(sh(APPLIED.replace(f"/{described['id']}/", f"/{proposal['id']}/")))["title"] == "Hello, world"
    sh(SEND)
    changed = json.loads(sh(CHANGE))
    assert changed | TIMES == created | {"title": "Hello again", "excerpt": "A greeting."} | TIMES
    post = json.loads(sh(SCHEDULE))
    assert (post["status"], post["published_at"]) == ("scheduled", "2099-01-01T07:00:00Z")
    noted = sh(ONCE)
    assert sh(ONCE) == noted
    assert sh(TAGS) == '[{"name":"News","posts":1}]\n{"name":"What is new?","posts":1}\n'
    assert sh(DELETE) == ""
    assert json.loads(sh(LISTING.splitlines()[0])) == [json.loads(noted), post]


def test_the_readme_commands_for_undoing_mistakes_work(sh):
    created = json.loads(sh(CREATE))
    sh(CHANGE)
    (listing, restore), (trash, bring_back) = REVISIONS.splitlines(), TRASH.splitlines()
    (revision,) = json.loads(sh(listing))
    number = f"/revisions/{revision['revision']}"
    for command in (restore, PUT_BACK):
        restored = sh(command.replace("/revisions/12", number))
        assert json.loads(restored) | TIMES == created | TIMES
        changed = json.loads(sh(CHANGE))

    dry_run = UNDO.strip()
    undo = dry_run.removesuffix(" --dry-run")
    assert undo != dry_run
    assert "Hello" in sh(dry_run)
    sh(DELETE)
    assert [each["post"]["id"] for each in json.loads(sh(trash))] == ["1"]
    assert json.loads(sh(bring_back)) | TIMES == changed | TIMES
    assert "Hello" in sh(undo)
    assert [each["post"]["id"] for each in json.loads(sh(trash))] == ["1"]
    sh(bring_back)
    sh(FOR_GOOD)
    assert sh(trash) == "[]\n"


@pytest.fixture
def started(tmp_path):
    """Start the service as the README does; yield its output and the environment for other commands."""
    environ = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "PORT": str(free_port())}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(RUN.split(), cwd=CHECKOUT, env=environ, start_new_session=True, **pipes)
    output = ""
    while "Booting worker" not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    yield output, environ
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)


def test_the_readme_commands_for_starting_it_for_keys_and_the_owners_page_work(started):
    output, environ = started
    first = re.search(r"blog_[A-Za-z0-9_-]{43}", output)[0]

    def sh(block, key=first):
        return shell(block, environ, key)

    pasted = re.search(r"^ +(curl .*)$", output, re.MULTILINE)[1]
    post = json.loads(sh(pasted, "unused"))
    assert (post["id"], post["title"], post["status"]) == ("1", "Hello", "published")

    made, *table, renewed, revoked = sh(KEYS).splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "LAST"], ["first", first[-4:]], ["laptop", made[-4:]]]
    assert made != renewed
    assert re.fullmatch("revoked laptop in .*/blog.db", revoked)
    sh(SEND_ALL)  # drafts
    _, read_only, published_only = sh(LESS).split()
    listed = sh(LISTING.splitlines()[0])
    assert [post["status"] for post in json.loads(listed)] == ["draft", "draft", "draft", "published"]
    assert sh(LISTING.splitlines()[0], read_only) == listed
    assert [len(json.loads(line)) for line in sh(LISTING, published_only).splitlines()] == [1, 0]

    link = sh(SETTINGS)
    address = rf"http://127\.0\.0\.1:{environ['PORT']}/settings/open"
    assert re.fullmatch(rf"{address}\?link=blog_link_[A-Za-z0-9_-]+\n", link)


def test_the_readme_commands_for_importing_and_exporting_work(sh, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(SAMPLES, home, ignore=shutil.ignore_patterns("broken.md"))
    for name in ("wordpress.xml", "ghost.json"):
        (home / "exports" / name).rename(home / name)
    post = TAKEOUT.format(number=1, kind="POST", status="LIVE")
    files = {
        "takeout/Blogger/Blogs/kitchen/feed.atom": ATOM.format(more=f" xmlns:blogger='{BLOGGER}'", entries=post),
        "medium-export/posts/2019-05-04_Rye-bread-0a1b2c3d4e5f.html": MEDIUM,
        "substack-export/posts/1.rye.html": "<p>Text.</p>",
        "substack-export/posts.csv": "\n".join(SUBSTACK.splitlines()[:2]).replace('"Rye, bread"', "Rye rolls"),
        "feed.xml": ATOM.format(more="", entries=ENTRY),
    }
    write_files(home, files)

    def run(block):
        return sh(block, HOME=str(home))

    first = int(re.search(r"^made (\d+), changed 0, unchanged 0, refused 0$", run(IMPORT), re.MULTILINE)[1])
    summaries = [line for line in run(MOVE).splitlines() if line.startswith("made ")]
    pattern = r"made (\d+), changed 0, unchanged \d+, refused 0"
    created = [first, *(int(re.fullmatch(pattern, line)[1]) for line in summaries)]
    assert len(created) == 13
    assert all(created)
    assert set(re.findall(r": would be (\w+): ", run(DRY_RUN))) == {"unchanged"}
    assert run(LEAVE) == f"written {sum(created)}, unchanged 0, deleted 0\n"
    assert len(list((home / "posts").glob("*.md"))) == sum(created)


def test_the_pages_on_webhooks_work(sh, tmp_path):
    check = {}
    exec(IS_GENUINE, check)
    with Receiver() as receiver:
        webhook = json.loads(sh(SUBSCRIBE.replace("https://example.org/hook", receiver.url)))
        ping, deliveries = PING.splitlines()
        pinged = json.loads(sh(ping))
        eventually(lambda: json.loads(sh(deliveries))[0]["state"] == "delivered")
        sh(CREATE)
        eventually(lambda: len(receiver.messages) == 2)
    assert pinged["id"] == receiver.messages[0].id
    assert receiver.types == ["ping", "post.published"]
    for message in receiver.messages:
        assert check["is_genuine"](webhook["secret"], message.headers, message.body)
        assert not check["is_genuine"](webhook["secret"], message.headers, message.body + b" ")
        (tmp_path / "body.json").write_bytes(message.body)
        variables = {"WEBHOOK_ID": message.id, "WEBHOOK_TIMESTAMP": message.headers["webhook-timestamp"]}
        block = OPENSSL.replace("body.json", str(tmp_path / "body.json"))
        assert sh(block, SECRET=webhook["secret"], **variables) == message.headers["webhook-signature"]


def test_the_pages_on_health_metrics_and_backups_work(sh, service, tmp_path):
    sh(SEND)
    assert sh(HEALTH) == '{"status":"ok"}\n'
    assert "WRONG" not in sh(DOCTOR)

    (job,) = yaml.safe_load(SCRAPE.replace("blog_…", service.key))["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    metrics = sh(f'curl -f http://{target}/metrics --oauth2-bearer "{job["authorization"]["credentials"]}"', "")
    assert 'blogapi_requests_total{operation="put_post",status="201"} 1.0' in metrics

    backup = BACKUP.replace('"blog-', f'"{tmp_path}/blog-')
    assert sh(backup) == ""
    (copy,) = tmp_path.glob("blog-*.db")
    assert execute(copy, "SELECT slug FROM post") == [("sourdough",)]

    metrics = sh(f"curl -f http://{target}/metrics --oauth2-bearer {service.key}", "")
    (group,) = yaml.safe_load(ALERTS)["groups"]
    names = {name for rule in group["rules"] for name in re.findall(r"blogapi_\w+", rule["expr"])}
    assert names
    assert {name for name in names if f"\n{name} " not in metrics} == set()


@pytest.mark.parametrize("page", [README, REFERENCE, WEBHOOKS, RUNNING, BACKUPS, Page("docs/upgrading.md")])
def test_every_block_is_run(page):
    assert page.forgotten == []


def test_an_image_is_uploaded_and_posts_are_sent_with_micropub(sh, service, tmp_path):
    (tmp_path / "loaf.jpg").write_bytes(jpeg())
    uploads = [re.sub("(@|-T )loaf", rf"\1{tmp_path}/loaf", block) for block in (UPLOAD, *UPLOADS)]
    answers = [sh(block) for block in uploads]
    assert len(set(answers)) == 1
    image = json.loads(answers[0])
    (described,) = map(json.loads, IMAGES.take("Images", "json"))
    assert (list(image), image["name"]) == (list(described), "loaf.jpg")
    assert sh(f"curl -o /dev/null -w '%{{size_download}}' {image['url']}") == str(image["bytes"])

    words, photo = sh(NOTES.replace("@loaf", f"@{tmp_path}/loaf")).splitlines()
    (described,) = MICROPUB.take("Shortcuts and curl", "json")
    assert json.loads(words) == json.loads(described.replace("8000", str(service.port)))
    post = json.loads(sh(f"curl {json.loads(photo)['url']} --oauth2-bearer $KEY"))
    assert post["content"] == f"Bread\n\n![]({image['url']})\n"
