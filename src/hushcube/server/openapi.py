"""The OpenAPI document, made from the routes that are served."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from hushcube import __version__
from hushcube.server import shapes
from hushcube.server.fields import Field
from hushcube.server.route import JSON, KEY, Route

VERSION: Final = "3.1.0"
_PLACES: Final = {
    "account": "The name of an account, from GET /accounts.",
    "session": "The name of a session, from GET /sessions.",
    "digest": "The digest of a release, from GET /accounts/{account}/releases.",
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """What every route takes and gives."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": VERSION,
        "info": {
            "title": "hushcube",
            "version": __version__,
            "description": "Tables of a data cube with differential privacy, from one budget. Who asks holds no data.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Refusal": shapes.REFUSAL},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", route.name.lower()).strip("_"),
        "summary": route.says,
        "responses": {
            "200": {
                "description": "Done.",
                "content": {kind: {"schema": shape} for kind, shape in route.gives.items()},
            },
            **{str(status): _refusal(status) for status in route.problems},
        },
    }
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": _PLACES[name]}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    parameters = in_path + [_parameter("query", field) for field in route.query]
    if route.takes_key:
        parameters.append(_parameter("header", KEY))
    if parameters:
        found["parameters"] = parameters
    if route.role is not None:
        found["security"] = [{"token": []}]
        found["x-role"] = route.role
    if route.body:
        schema = shapes.thing(**{field.name: field.schema | {"description": field.says} for field in route.body})
        schema["required"] = [field.name for field in route.body if field.required]
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return found


def _parameter(place: str, field: Field) -> dict[str, Any]:
    told = {"name": field.name, "in": place, "schema": field.schema, "description": field.says}
    return told | ({"required": True} if field.required else {})


def _refusal(status: int) -> dict[str, Any]:
    content = {JSON: {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    return {"description": HTTPStatus(status).phrase, "content": content}
