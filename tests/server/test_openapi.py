"""The OpenAPI document, and requests made from it: whatever they say, the server answers as it is described."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hushcube.server.fields import read_document
from hushcube.server.routes import ROUTES
from hushcube.web.refusals import Refusal

CASES = int(os.environ.get("HUSHCUBE_SERVER_CASES", "150"))
"""How many requests are made; 5,000 is the whole."""
PLACES = {"account": "hospital", "session": "stays"}
QUESTIONS = ("sex", "age*sex", "region*season", "age:decade", "shoes", "2-way", "*")


@pytest.fixture(scope="module")
def api(hospital):
    import schemathesis

    assert hospital.ask("sex", "first").status_code == 200  # so that no list is empty
    return schemathesis.openapi.from_asgi("/openapi.json", hospital.client.app)


def test_every_request_is_answered_as_described(hospital, api):
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]
    operations = [result.ok() for result in api.get_all_operations()]
    assert len(operations) == len(ROUTES) - 1  # all but the document itself
    varied = [one for one in operations if any(map(len, (one.path_parameters, one.query, one.headers, one.body)))]
    made = []
    for operation in operations:
        try_some(hospital, operation, GenerationMode.POSITIVE, checks, made, CASES // (2 * len(varied)))
    for operation in varied:
        try_some(hospital, operation, GenerationMode.NEGATIVE, checks, made, CASES // (2 * len(varied)))
    print(f"{len(made):,} requests: {dict(Counter(made))}")
    assert len(made) >= CASES * 0.9 and 200 in made


def try_some(hospital, operation, mode, checks, made, cases):
    quiet = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    who = "stranger" if operation.path.endswith("lock") else "owner"

    @settings(max_examples=cases, **quiet)
    @given(
        case=operation.as_strategy(generation_mode=mode),
        real=st.sampled_from([True, True, True, False]),
        question=st.sampled_from(QUESTIONS),
    )
    def one(case, real, question):
        if real:  # names that are there, so that more than the door is tried
            for name in set(case.path_parameters or ()) & set(PLACES):
                case.path_parameters[name] = PLACES[name]
            for fields in (case.body, case.query):
                if isinstance(fields, dict) and "question" in fields:
                    fields["question"] = question
        for name in [name for name in case.headers or () if name.lower() == "authorization"]:
            del case.headers[name]
        response = case.call(headers={"Authorization": f"Bearer {hospital.tokens[who]}"})
        made.append(response.status_code)
        case.validate_response(response, checks=checks)

    one()


def test_the_document_is_made_from_the_routes(hospital):
    document = hospital("GET", "/openapi.json", "nobody").json()
    described = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert described == {route.name for route in ROUTES}
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        assert operation.get("x-role") == route.role and ("security" in operation) == (route.role is not None)
        assert {str(status) for status in route.problems} < set(operation["responses"])


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | st.sampled_from([b"[" * 10**5, b"9" * 10**4]))
def test_any_bytes_are_a_document_or_refused(body):
    try:
        assert isinstance(read_document(body), dict)
    except Refusal as refused:
        assert refused.status == 400
