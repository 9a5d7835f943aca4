"""The blocks on the page about agents and in the skill, run exactly as written."""

import json
import re
import shutil

import pytest

from tests.images.pictures import jpeg
from tests.pages import Page

pytestmark = pytest.mark.slow

AGENTS, SKILL = Page("docs/agents.md"), Page("examples/skill/SKILL.md")
(AGENT_KEY,), (AGENT_UNDO,), (AGENT_EXPORTS,) = map(AGENTS.take, ("Agents", "Undoing an agent's changes", "A skill"))
ANNOUNCE, PROPOSE, APPLY = AGENTS.take("Proposing changes")
(AGENT,) = AGENTS.take("The Model Context Protocol", "python")
STEPS = "Read", "Create a draft", "Change a draft", "Propose a change to a published post", "Images", "Remove a draft"
SKILLS = [*map(SKILL.take, STEPS)]
HELLO = {"title": "Hello", "content": "A", "status": "published"}
SOURDOUGH = {"title": "Sourdough", "content": "Flour.", "status": "published"}


def test_an_agent_can_do_what_its_skill_says_but_never_publishes(sh, tmp_path):
    compile(AGENT, "agent.py", "exec")  # FastMCP has too many dependencies to be one of the tests.
    (tmp_path / "loaf.jpg").write_bytes(jpeg())
    sh(AGENT_KEY)
    sh(f"""curl http://127.0.0.1:8000/v1/posts --oauth2-bearer $KEY --json '{json.dumps(HELLO)}'""")
    (found, *_), (created,), (changed,), (proposed,), (image,), (deleted,) = [
        [sh(AGENT_EXPORTS + block.replace("@loaf", f"@{tmp_path}/loaf")) for block in blocks] for blocks in SKILLS
    ]
    assert found == "[]\n" * 3
    assert json.loads(proposed)["changes"] == {"title": "Hello, world"}
    post = json.loads(created)
    assert post["slug"] == "sourdough-for-the-impatient"
    assert (json.loads(changed)["excerpt"], deleted) == ("Bread in two days, or three.", "")
    assert json.loads(image)["name"] == "loaf.jpg"
    create = f"{AGENT_EXPORTS}curl $BLOG_URL/v1/posts --oauth2-bearer $BLOG_KEY --json "
    assert json.loads(sh(create + """'{"title": "A", "content": "B", "status": "published"}'"""))["error"] == 403
    sh(create + """'{"title": "Mine", "content": "B"}'""")
    assert "“Mine”: would be moved to the trash" in sh(AGENT_UNDO)


def test_an_agent_proposes_a_change_that_is_applied_with_another_key(sh):
    sh(AGENT_KEY)
    agent = re.search("blog_.*", sh(".venv/bin/blogapi keys regenerate agent"))[0]
    sh(f"""curl 127.0.0.1:8000/v1/posts --oauth2-bearer $KEY --json '{json.dumps(SOURDOUGH)}'""")
    assert json.loads(sh(ANNOUNCE))["events"] == ["post.proposed"]
    found, proposed = sh(PROPOSE, AGENT=agent).splitlines()
    assert json.loads(found) == [{"id": "1", "title": "Sourdough", "status": "published", "slug": "sourdough"}]
    assert json.loads(proposed)["changes"] == {"excerpt": "Bread in two days, or three."}
    (delivery,) = json.loads(sh("curl 127.0.0.1:8000/v1/webhooks/1/deliveries --oauth2-bearer $KEY"))
    assert delivery["event"] == "post.proposed"
    if shutil.which("jq"):
        assert json.loads(sh(APPLY))["excerpt"] == "Bread in two days, or three."


def test_every_block_is_run():
    assert AGENTS.forgotten == SKILL.forgotten == []
