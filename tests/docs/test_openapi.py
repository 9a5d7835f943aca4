"""The description of the API is valid, complete, and matches the running service."""

import json
import re
import subprocess

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from blogapi import cli
from blogapi.api.schemas import StrictSchema
from blogapi.documents import FIELDS, ID, MAX_SLUG, SLUG
from blogapi.posts.schemas import PostSchema
from blogapi.wings.docs.openapi import SHAPES
from blogapi.wings.tags.views import TagSchema
from blogapi.wings.webhooks.models import EVENTS, Event
from blogapi.wings.webhooks.views import DELIVERY_ID, CreatedWebhookSchema, DeliverySchema, WebhookSchema
from tests.service import BIN, CHECKOUT, Server, unmeasured

REFERENCE = (CHECKOUT / "docs/reference.md").read_text()


@pytest.fixture
def description(stranger):
    return stranger.get("/openapi.json").json


@pytest.fixture
def operations(description):
    """The description of each operation, by its path and method."""
    return {(path, method): each for path, item in description["paths"].items() for method, each in item.items()}


@pytest.fixture
def routes(app):
    """The method and path of each route under /v1."""
    return {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD"}
        if rule.rule.startswith("/v1")
    }


def test_it_is_valid(description):
    OpenAPIV31SpecValidator(description).validate()
    assert (description["openapi"], description["info"]["version"]) == ("3.1.0", "1.0.0")


def test_it_says_how_a_breaking_change_would_be_announced(description):
    assert "a `/v2`, announced twelve months\nahead in the headers `Deprecation`" in description["info"]["description"]


def test_it_has_every_route_and_no_other(routes, operations):
    assert {(method.upper(), path) for path, method in operations} == routes


def test_an_operation_has_the_name_of_its_view(operations):
    """Generated clients use this name, so it must not change."""
    names = {(path, method): each["operationId"] for (path, method), each in operations.items()}
    assert names["/v1/posts", "post"] == "create_post"
    assert names["/v1/posts/by-slug/{post}", "patch"] == "change_post_by_slug"
    assert not [name for name in names.values() if name.startswith("api")]


def test_the_reference_has_every_route_and_no_other(routes):
    rows = re.findall(r"^\| `(/v1\S*)` \| (.+) \|$", REFERENCE, re.MULTILINE)
    named = set()
    for path, said in rows:
        below = "".join(re.findall(r"`POST` to `…(\S+)`", said))
        named |= {(method, path) for method in re.findall("`([A-Z]+)`(?! to )", said)}
        named |= {("POST", path + below)} if below else set()
    by_slug = {(method, path) for method, path in routes if "/by-slug/" in path and method != "PUT"}
    assert named == routes - by_slug
    assert {(method, path.replace("by-slug/", "")) for method, path in by_slug} <= routes


def schemas(base):
    """Yield all subclasses of a schema."""
    for schema in base.__subclasses__():
        yield schema
        yield from schemas(schema)


def validate(value, schema, description):
    """Raise ValidationError unless a value matches a schema in the description."""
    checker = Draft202012Validator.FORMAT_CHECKER
    Draft202012Validator(schema | {"components": description["components"]}, format_checker=checker).validate(value)


def test_the_examples_are_valid(description):
    components = description["components"]
    found = {each.__name__.removesuffix("Schema"): each for each in schemas(StrictSchema)}
    for name in components["schemas"].keys() - SHAPES.keys():
        example = components["schemas"][name]["example"]
        validate(example, components["schemas"][name], description)
        if name in found:
            assert example == found[name].example
            found[name](partial=name in ("PostChange", "WebhookChange")).load(example)
    for status, response in components["responses"].items():
        example = response["content"]["application/json"].get("example", components["schemas"]["Error"]["example"])
        validate(example, components["schemas"]["Error"], description)
        assert status in ("Error", str(example["error"]))


def test_every_answer_is_as_described(client, post, database, description):
    post(title="Käse", tags=["a"], excerpt="b", cover_image="https://a/b", status="published")
    post()
    assert len(PostSchema(many=True).load(client.get("/v1/posts").json)) == 2
    assert len(TagSchema(many=True).load(client.get("/v1/tags").json)) == 1
    created = client.post("/v1/webhooks", json={"url": "http://8.8.8.8"})
    assert CreatedWebhookSchema().load(created.json)
    assert DeliverySchema().load(client.post("/v1/webhooks/1/ping").json)
    post(status="published")
    assert len(WebhookSchema(many=True).load(client.get("/v1/webhooks").json)) == 1
    client.patch("/v1/tags/a", json={"name": "b"})
    client.delete("/v1/tags/b")
    assert len(DeliverySchema(many=True).load(client.get("/v1/webhooks/1/deliveries").json)) == 5
    payloads = [json.loads(payload) for (payload,) in database.rows(Event.select(Event.payload))]
    types = ["ping", "post.created", "post.published", "tag.updated", "tag.deleted"]
    assert [payload["type"] for payload in payloads] == types
    for payload in payloads:
        body = description["webhooks"][payload["type"]]["post"]["requestBody"]["content"]["application/json"]
        validate(payload, body["schema"], description)


def test_bodies_are_closed_and_answers_are_open(description):
    schemas = description["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    bodies = {"PostInput", "PostChange", "PutPost", "TagChange", "Upload", "WebhookInput", "WebhookChange"}
    assert closed == bodies
    for name in ("PostEvent", "TagUpdated", "TagDeleted", "Ping"):
        assert "enum" not in schemas[name]["properties"]["type"]
    for schema in (schemas["Webhook"]["properties"]["events"]["items"], schemas["Delivery"]["properties"]["event"]):
        assert (schema["type"], schema["examples"], "enum" in schema) == ("string", list(EVENTS), False)


def test_every_status_is_documented(operations):
    for operation in operations.values():
        assert {"400", "401", "403", "404", "413", "415", "429", "500", "503"} <= operation["responses"].keys()
        assert all(status.isdigit() for status in operation["responses"])


def test_parameters_have_the_form_that_generators_need(operations):
    listing = {each["name"]: each for each in operations["/v1/posts", "get"]["parameters"]}
    names = listing["fields"]
    assert (names["style"], names["explode"], names["example"]) == ("form", False, ["slug", "tags"])
    assert (names["schema"]["type"], names["schema"]["items"]["enum"]) == ("array", list(FIELDS))
    assert "format" not in listing["published_after"]["schema"]
    for operation in operations.values():
        assert all("example" in each for each in operation["parameters"] if each["in"] == "path")


def test_it_does_not_name_a_program(description):
    assert "curl" not in json.dumps(description)


def test_it_describes_what_receivers_get(description):
    others = {"ping": "Ping", "post.proposed": "PostProposed", "tag.updated": "TagUpdated", "tag.deleted": "TagDeleted"}
    assert set(description["webhooks"]) == set(EVENTS)
    for event, item in description["webhooks"].items():
        names = [parameter["name"] for parameter in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{others.get(event, 'PostEvent')}"}


def parts(value, path=()):
    """Yield every object of the description, with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(each, (*path, key))


def test_everything_is_described_in_words(description):
    for path, part in parts(description):
        is_property = path[-2:-1] == ("properties",) and path[0] == "components"
        is_component = path[:1] == ("components",) and len(path) == 3 and path[1] != "securitySchemes"
        if is_property or is_component or path[-2:-1] in (("parameters",), ("tags",)) or "operationId" in part:
            assert len(part.get("description", "")) > 4, path


def test_path_parameters_follow_the_rules_of_the_service(operations):
    def schemas(path, method="get"):
        return [each["schema"] for each in operations[path, method]["parameters"] if each["in"] == "path"]

    of_id = {"type": "string", "pattern": f"^{ID}$"}
    of_slug = {"type": "string", "pattern": f"^{SLUG}$", "maxLength": MAX_SLUG}
    of_delivery = {"type": "string", "pattern": f"^{DELIVERY_ID}$"}
    assert schemas("/v1/posts/{post}/revisions/{revision}") == [of_id, of_id]
    assert schemas("/v1/posts/by-slug/{post}") == [of_slug]
    assert schemas("/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", "post") == [of_id, of_delivery]


def test_its_patterns_are_short_and_plain_ascii(description):
    for pattern in {part["pattern"] for _, part in parts(description) if "pattern" in part}:
        assert pattern.isascii()
        assert pattern.isprintable()
        assert len(pattern) < 200


def test_nothing_in_it_makes_an_optional_field_required(description):
    assert [path for path, part in parts(description) if "default" in part] == []


def test_every_description_begins_with_what_the_operation_does(operations):
    for operation in operations.values():
        assert operation["description"].startswith(operation["summary"])


def test_events_have_their_own_tag(operations, description):
    assert {tag for item in description["webhooks"].values() for tag in item["post"]["tags"]} == {"events"}
    assert "events" not in {tag for operation in operations.values() for tag in operation["tags"]}


def test_every_accepted_content_type_is_described(operations):
    def bodies(path, method):
        return list(operations[path, method]["requestBody"]["content"])

    merge_patch = ["application/json", "application/merge-patch+json"]
    assert bodies("/v1/posts", "post") == ["application/json", "text/markdown"]
    assert bodies("/v1/posts/by-slug/{post}", "put") == ["application/json", "text/markdown"]
    assert bodies("/v1/posts/{post}", "patch") == merge_patch
    file = operations["/v1/posts/{post}", "get"]["responses"]["200"]["content"]["text/markdown"]
    assert file["example"].startswith("---\ntitle: Three days at the lake\n")


@pytest.mark.in_process
def test_the_example_of_a_file_can_be_sent_again_and_to_any_slug(client, description):
    for method, path in [("post", "/v1/posts")] * 2 + [("put", "/v1/posts/by-slug/a"), ("put", "/v1/posts/by-slug/b")]:
        template = path if method == "post" else "/v1/posts/by-slug/{post}"
        example = description["paths"][template][method]["requestBody"]["content"]["text/markdown"]["example"]
        assert client.open(path, method=method, data=example, content_type="text/markdown").status_code == 201


def test_no_path_parameter_is_also_a_field_of_the_body(operations, description):
    for (path, _), operation in operations.items():
        if body := operation.get("requestBody", {"content": {}})["content"].get("application/json"):
            name = body["schema"]["$ref"].rpartition("/")[2]
            fields = description["components"]["schemas"][name]["properties"].keys()
            assert not fields & set(re.findall(r"{(\w+)}", path)), path


def test_the_command_line_prints_the_same(stranger):
    printed = CliRunner().invoke(cli.command_line, ["openapi"]).stdout
    assert json.loads(printed) == stranger.get("/openapi.json").json


@pytest.mark.slow
def test_it_matches_the_running_service(tmp_path):
    """Schemathesis with all its checks: positive and negative data, and sequences of operations."""
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        command = [BIN / "schemathesis", "--config-file", CHECKOUT / "tests/schemathesis.toml", "run"]
        command += [f"http://127.0.0.1:{service.port}/openapi.json"]
        command += ["--checks", "all", "--max-examples", "5", "--seed", "1"]
        hooks = {"SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks", "PYTHONPATH": str(CHECKOUT)}
        environ = unmeasured() | hooks | {"KEY": service.key}
        ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout
