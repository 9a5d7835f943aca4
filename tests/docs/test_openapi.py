"""The description of the API is valid and complete, and matches the running service."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from jsonschema import ValidationError as JsonInvalid

from blogapi.api.schemas import StrictSchema
from blogapi.documents import FIELDS, ID_PATTERN, MAX_SLUG, SET_BY_SERVICE, SLUG_PATTERN
from blogapi.posts.schemas import PostSchema
from blogapi.storage.keys import PERMISSIONS, may
from blogapi.storage.models import PUBLISHED_ONLY, SCOPES
from blogapi.webhooks.storage import EVENTS, Event
from blogapi.webhooks.views import DELIVERY_ID, NOT_DEFAULT, CreatedWebhookSchema, DeliverySchema, WebhookSchema
from blogapi.wings.docs.openapi import AGENTS, SHAPES
from blogapi.wings.tags.views import TagSchema
from tests.api.fixtures import with_key
from tests.service import CHECKOUT

REFERENCE = (CHECKOUT / "docs/reference.md").read_text()


@pytest.fixture
def description(stranger):
    return stranger.get("/openapi.json").json


@pytest.fixture
def operations(description):
    """The description of each operation, by its path and method."""
    return {(path, method): each for path, item in description["paths"].items() for method, each in item.items()}


def test_it_is_valid(description):
    from openapi_spec_validator import OpenAPIV31SpecValidator  # Importing it takes half a second.

    OpenAPIV31SpecValidator(description).validate()
    assert (description["openapi"], description["info"]["version"]) == ("3.1.0", "1.0.0")
    assert "`Sunset` headers would announce it twelve months ahead" in description["info"]["description"]
    assert "curl" not in json.dumps(description)  # because clients are other programs


def test_an_operation_has_the_name_of_its_view_and_nine_are_marked_as_tools_for_agents(operations):
    """Generated clients use this name, so it must not change."""
    names = {(path, method): each["operationId"] for (path, method), each in operations.items()}
    assert names["/v1/posts", "post"] == "create_post"
    assert names["/v1/posts/by-slug/{post}", "patch"] == "change_post_by_slug"
    assert not [name for name in names.values() if name.startswith("api")]
    marked = {each["operationId"] for each in operations.values() if "agents" in each["tags"]}
    assert (marked, len(marked)) == (AGENTS, 9)


def test_an_operation_by_slug_takes_and_answers_the_same_as_the_one_by_id(operations):
    def contract(operation):
        others = [each for each in operation["parameters"] if each["name"] != "post"]
        return others, operation.get("requestBody"), operation["responses"]

    for (path, method), operation in operations.items():
        if operation["operationId"].endswith("_by_slug"):
            assert contract(operation) == contract(operations[path.replace("/by-slug", ""), method]), path


def test_it_and_the_reference_have_every_route_and_no_other(app, operations):
    routes = {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD"}
        if rule.rule.startswith("/v1")
    }
    assert {(method.upper(), path) for path, method in operations} == routes
    rows = re.findall(r"^\| `(/v1\S*)` \| (.+) \|$", REFERENCE, re.MULTILINE)
    named = set()
    for path, said in rows:
        below = "".join(re.findall(r"`POST` to `…(\S+)`", said))
        named |= {(method, path) for method in re.findall("`([A-Z]+)`(?! to )", said)}
        named |= {("POST", path + below)} if below else set()
    by_slug = {(method, path) for method, path in routes if "/by-slug/" in path and method != "PUT"}
    assert named == routes - by_slug, "edit the tables of operations in docs/reference.md"
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
    events = [event for event in EVENTS if event != "post.proposed"]
    created = client.post("/v1/webhooks", json={"url": "http://8.8.8.8", "events": events})
    assert CreatedWebhookSchema().load(created.json)
    assert DeliverySchema().load(client.post("/v1/webhooks/1/ping").json)
    post(status="published")
    assert len(WebhookSchema(many=True).load(client.get("/v1/webhooks").json)) == 1
    client.patch("/v1/tags/a", json={"name": "b"})
    client.delete("/v1/tags/b")
    client.delete("/v1/posts/2")
    client.delete("/v1/posts/1")
    deliveries = DeliverySchema(many=True).load(client.get("/v1/webhooks/1/deliveries").json)
    payloads = [json.loads(payload) for (payload,) in database.rows(Event.select(Event.payload))]
    types = ["ping", "post.created", "post.published", "site.changed", "tag.updated", "site.changed", "tag.deleted"]
    types += ["site.changed", "post.deleted", "post.deleted", "site.changed"]
    assert [payload["type"] for payload in payloads] == types == [each["event"] for each in reversed(deliveries)]
    for payload in payloads:
        body = description["webhooks"][payload["type"]]["post"]["requestBody"]["content"]["application/json"]
        validate(payload, body["schema"], description)


def test_bodies_are_closed_and_answers_are_open(description, operations):
    schemas = description["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    bodies = json.dumps([operation.get("requestBody") for operation in operations.values()])
    assert closed == {*re.findall(r"#/components/schemas/(\w+)", bodies)}
    assert closed >= {"NewPost", "PostInput", "PostChange", "WebhookInput"}
    for name in ("PostEvent", "TagUpdated", "TagDeleted", "Ping"):
        assert "enum" not in schemas[name]["properties"]["type"]
    for schema in (schemas["Webhook"]["properties"]["events"]["items"], schemas["Delivery"]["properties"]["event"]):
        assert (schema["type"], schema["examples"], "enum" in schema) == ("string", list(EVENTS), False)


def test_every_operation_describes_what_it_does_its_successes_and_one_error_for_all_others(operations):
    for (path, _), operation in operations.items():
        assert operation["description"].startswith(operation["summary"])
        successes = {status for status in operation["responses"] if status[0] in "23"}
        errors = {"400", "401", "429", "default"} | ({"404"} if "{" in path else set())
        assert operation["responses"].keys() == successes | errors
        assert {operation["responses"][error]["$ref"] for error in errors} == {"#/components/responses/Error"}
        assert successes


def test_a_post_as_it_was_received_is_a_valid_body(client, post, description):
    got = post(status="published")
    for name in ("NewPost", "PostInput", "PostChange"):
        validate(got, {"$ref": f"#/components/schemas/{name}"}, description)
        properties = description["components"]["schemas"][name]["properties"]
        assert {key for key in properties if properties[key].get("readOnly")} == set(SET_BY_SERVICE)


def test_a_new_post_is_a_draft_by_default_and_other_bodies_take_all_statuses(description):
    schemas = description["components"]["schemas"]
    new, null = {"type": "string", "enum": ["published", "draft"], "default": "draft"}, {"type": "null"}
    assert schemas["NewPost"]["properties"]["status"]["anyOf"] == [new, null]
    for name in ("PostInput", "PostChange"):
        assert schemas[name]["properties"]["status"]["anyOf"] == [{"$ref": "#/components/schemas/Status"}, null]


def test_parameters_have_the_form_that_generators_need(operations):
    listing = {each["name"]: each for each in operations["/v1/posts", "get"]["parameters"]}
    names = listing["fields"]
    assert (names["style"], names["explode"], names["example"]) == ("form", False, ["slug", "tags"])
    assert (names["schema"]["type"], names["schema"]["items"]["enum"]) == ("array", list(FIELDS))
    assert "format" not in listing["published_after"]["schema"]
    parameters = [each for operation in operations.values() for each in operation["parameters"]]
    assert all("example" in each for each in parameters if each["in"] == "path")
    flags = {each["name"] for each in parameters if each["schema"].get("type") == "boolean"}
    assert flags == {"permanent", "force"}


def pascal(name):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


OF_OPERATION = "Params Body Response Responses Request Result Data Error Errors Headers Query Path Options Mutation"
OF_SCHEMA = "Item Type Enum Schema Response"


def names_of_generators(description, operations):
    """The names that generators give to types: the names of schemas or operations, joined with those of their parts."""
    for name, schema in description["components"]["schemas"].items():
        parts = [*map(pascal, schema.get("properties", {})), *OF_SCHEMA.split()]
        yield name, {name} | {name + part + end for part in parts for end in ("", "Item")}
    for operation in operations.values():
        name = pascal(operation["operationId"])
        parts = [pascal(each["name"]) for each in operation["parameters"]]
        parts += [*OF_OPERATION.split(), *map(pascal, operation["responses"])]
        yield operation["operationId"], {name} | {name + part + end for part in parts for end in ("", "Item")}


def test_no_two_names_meet_whatever_a_generator_joins(description, operations):
    owners = {}
    for owner, names in names_of_generators(description, operations):
        for name in names:
            owners.setdefault(name.lower(), set()).add(owner)
    assert {name: found for name, found in owners.items() if len(found) > 1} == {}


def test_a_single_post_requires_every_constant_field_and_a_list_may_have_summaries(description, operations):
    schemas = description["components"]["schemas"]
    always = {"id", "title", "status", "slug", "content", "tags", "created_at", "updated_at"}
    assert {*schemas["Post"]["required"]} == always
    assert {*schemas["PostSummary"]["required"]} == {"id", "title", "status"}
    answers = {}
    for (path, method), operation in operations.items():
        for status, response in operation["responses"].items():
            if "json" in str(response) and "/Post" in str(response) and status != "default":
                answers[method, path, status] = response["content"]["application/json"]["schema"]
    listed = answers.pop(("get", "/v1/posts", "200"))
    assert [each["$ref"].rpartition("/")[2] for each in listed["items"]["anyOf"]] == ["Post", "PostSummary"]
    assert len(answers) > 10
    assert {schema["$ref"].rpartition("/")[2] for schema in answers.values()} == {"Post"}


def test_a_list_returns_posts_or_with_fields_summaries(client, post, description):
    post(status="published", tags=["a"])
    post()
    whole, some = client.get("/v1/posts").json, client.get("/v1/posts?fields=slug").json
    refs = {name: {"$ref": f"#/components/schemas/{name}"} for name in ("Post", "PostSummary")}
    for value in whole:
        validate(value, refs["Post"], description)
    for value in [*some, *whole]:
        validate(value, refs["PostSummary"], description)
    with pytest.raises(JsonInvalid):
        validate(some[0], refs["Post"], description)


def test_one_table_says_which_keys_may_use_an_operation(description, operations):
    for operation in operations.values():
        said = operation["description"].rpartition("\n\nKeys: ")[2].removesuffix(".")
        assert tuple(said.split(", ")) in PERMISSIONS
    for scope in SCOPES:
        assert f"- {scope}: it may {may(scope)}.\n" in description["info"]["description"]
    for scopes, words in PERMISSIONS.items():
        cells = ["published ones" if "{posts}" in words and scope == PUBLISHED_ONLY else "yes" for scope in SCOPES]
        cells = [cell if scope in scopes else "" for scope, cell in zip(SCOPES, cells, strict=True)]
        row = " | ".join(["", words.format(posts="posts"), *cells, ""])
        assert re.sub(" +", " ", row).strip() in REFERENCE


def test_the_guard_lets_exactly_the_described_keys_pass(app, operations):
    ids = {"revision": "1", "image_id": "0" * 32, "tag": "a", "delivery_id": "msg_" + "x" * 22}
    for scope in SCOPES:
        client = with_key(app, scope)
        for (path, method), operation in operations.items():
            filled = re.sub(r"{(\w+)}", lambda match: ids.get(match[1], "1"), path)
            answer = client.open(filled, method=method, json={})
            is_refused = "it may read" in answer.text or answer.json == {"error": 404, "message": "no such path"}
            may_use = scope in operation["description"].rpartition("Keys: ")[2]
            assert is_refused != may_use, (scope, method, path, answer.text)


def test_it_describes_what_receivers_get(description):
    assert set(description["webhooks"]) == set(EVENTS)
    assert f"all events except {NOT_DEFAULT}." in " ".join((CHECKOUT / "docs/webhooks.md").read_text().split())
    schemas = description["components"]["schemas"]
    for event, item in description["webhooks"].items():
        names = [parameter["name"] for parameter in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        assert item["post"]["tags"] == ["events"]
        schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        name = pascal(event) if pascal(event) in schemas else "PostEvent"
        assert schema == {"$ref": f"#/components/schemas/{name}"}


def parts(value, path=()):
    """Yield every object of the description, with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(each, (*path, key))


def test_everything_is_described_in_words_and_in_a_form_that_generators_read(description, operations):
    tags = {tag for operation in operations.values() for tag in operation["tags"]}
    assert tags <= {tag["name"] for tag in description["tags"]} - {"events"}, "describe the tag in openapi.yaml"
    for path, part in parts(description):
        assert None not in part.get("enum", []), path
        pattern = part.get("pattern", "")
        assert (pattern.isascii(), pattern.isprintable(), len(pattern) < 200) == (True,) * 3, path
        is_property = path[-2:-1] == ("properties",) and path[0] == "components"
        assert "default" not in part or not is_property, path  # It would make an optional field required.
        is_component = path[:1] == ("components",) and len(path) == 3 and path[1] != "securitySchemes"
        if is_property or is_component or path[-2:-1] in (("parameters",), ("tags",)) or "operationId" in part:
            assert len(part.get("description", "")) > 4, path


def test_path_parameters_follow_the_rules_of_the_service(operations):
    def schemas(path, method="get"):
        return [each["schema"] for each in operations[path, method]["parameters"] if each["in"] == "path"]

    of_id = {"type": "string", "pattern": f"^{ID_PATTERN}$"}
    of_slug = {"type": "string", "pattern": f"^{SLUG_PATTERN}$", "maxLength": MAX_SLUG}
    of_delivery = {"type": "string", "pattern": f"^{DELIVERY_ID}$"}
    assert schemas("/v1/posts/{post}/revisions/{revision}") == [of_id, of_id]
    assert schemas("/v1/posts/by-slug/{post}") == [of_slug]
    assert schemas("/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", "post") == [of_id, of_delivery]


def test_every_accepted_content_type_is_described(operations):
    def bodies(path, method):
        return list(operations[path, method]["requestBody"]["content"])

    merge_patch = ["application/json", "application/merge-patch+json"]
    assert bodies("/v1/posts", "post") == ["application/json", "text/markdown"]
    assert bodies("/v1/posts/by-slug/{post}", "put") == ["application/json", "text/markdown"]
    assert bodies("/v1/posts/{post}", "patch") == merge_patch
    file = operations["/v1/posts/{post}", "get"]["responses"]["200"]["content"]["text/markdown"]
    assert file["example"].startswith("---\ntitle: Three days at the lake\n")


def test_no_path_parameter_is_also_a_field_of_the_body(operations, description):
    for (path, _), operation in operations.items():
        if body := operation.get("requestBody", {"content": {}})["content"].get("application/json"):
            name = body["schema"]["$ref"].rpartition("/")[2]
            fields = description["components"]["schemas"][name]["properties"].keys()
            assert not fields & set(re.findall(r"{(\w+)}", path)), path
