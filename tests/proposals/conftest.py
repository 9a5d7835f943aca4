"""Functions that make and apply proposals."""

import json

POST = "/v1/posts/1"


def propose(client, path=POST, **fields):
    body = json.dumps(fields, ensure_ascii=False).encode()
    answer = client.post(f"{path}/proposals", data=body, content_type="application/json")
    assert answer.status_code == 201, answer.text
    return answer.json


def apply(client, proposal, query="", **options):
    return client.post(f"/v1/posts/{proposal['post_id']}/proposals/{proposal['id']}/apply{query}", **options)


def titles(client, path="/v1/proposals"):
    return [each["changes"]["title"] for each in client.get(path).json]
