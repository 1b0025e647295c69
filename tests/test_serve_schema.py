import json
import re
import sys
from pathlib import Path

from serving import Process, serving

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from serve_soak import soak

ROUTES = """
GET /health
GET /metrics
GET /ready
GET /v1/mindstorms
GET /v1/mindstorms/{id}
GET /v1/mindstorms/{id}/events
GET /v1/mindstorms/{id}/images/{number}
GET /v1/models
GET /v1/models/{model}
GET /v1/societies
GET /v1/societies/{name}
GET /v1/societies/{name}/graph.svg
POST /v1/chat/completions
POST /v1/mindstorms
POST /v1/mindstorms/{id}/turns/{key}
DELETE /v1/mindstorms/{id}
"""


async def test_the_openapi_document_names_every_route_and_no_status_that_is_never_sent(tmp_path):
    async with serving(tmp_path) as (client, _):
        document = (await client.get("/openapi.json")).json()
    told = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert told == set(ROUTES.split("\n")) - {""}
    assert "422" not in json.dumps(document)


def test_what_is_made_up_from_the_document_gets_no_5xx_and_nothing_the_document_does_not_name(tmp_path):
    with Process(tmp_path, "--max-seconds", "5") as server:
        status, told = soak(server.url, tmp_path, examples=5, phases="fuzzing", seed=6)
        assert status == 0, told
        assert int(re.search(r"(\d+) generated", told)[1]) >= 50
        assert server.process.poll() is None
