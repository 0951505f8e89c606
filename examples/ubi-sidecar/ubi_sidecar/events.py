"""UBI events. They come from browsers, so they can contain anything."""

from __future__ import annotations

import json
from typing import Any, NoReturn

ID_LIMIT = 100
"""UBI's limit for `query_id`, `client_id` and `action_name`, in characters."""


class Refused(ValueError):
    """A body or an event that is not what it must be; the text says why."""


def parsed(text: bytes) -> Any:
    """The content of a JSON text. Raises `Refused`."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise Refused("the JSON is nested too deeply") from None
    except ValueError as error:
        raise Refused(f"not JSON: {error}") from None


def _no_number(name: str) -> NoReturn:
    raise Refused(f"not JSON: {name} is not a number of JSON")


def line(content: Any) -> bytes:
    """The content as a line of JSON. Raises `Refused` for what JSON or Unicode cannot say."""
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        raise Refused("a text has half of a surrogate pair, which is not Unicode") from None
    except ValueError:
        raise Refused("a number is too large for JSON") from None


def events_of(body: bytes) -> list[Any]:
    """The events of a request: an object is one, an array has several. Raises `Refused`."""
    content = parsed(body)
    if isinstance(content, dict):
        return [content]
    if isinstance(content, list):
        return content
    raise Refused("the body must be a UBI event or an array of UBI events")


def reduced(event: Any) -> dict[str, Any]:
    """The members of an event that rankduel reads: not the query, nor what else says something about
    the person. Raises `Refused` with the reason if the event is none."""
    if not isinstance(event, dict):
        raise Refused(f"an event must be an object, not {type(event).__name__}")
    action = event.get("action_name")
    if not isinstance(action, str) or not action:
        raise Refused("`action_name` must be a text, such as click")
    kept: dict[str, Any] = {"action_name": _short(action, "action_name")}
    query_id = event.get("query_id")
    if query_id is not None:
        if not isinstance(query_id, str):
            raise Refused("`query_id` must be a text")
        kept["query_id"] = _short(query_id, "query_id")
    if isinstance(event.get("client_id"), str):
        kept["client_id"] = event["client_id"][:ID_LIMIT]
    kept["event_attributes"] = _attributes(event.get("event_attributes"))
    line(kept)
    return kept


def _attributes(attributes: Any) -> dict[str, Any]:
    if attributes is None:
        return {}
    if not isinstance(attributes, dict):
        raise Refused("`event_attributes` must be an object")
    kept: dict[str, Any] = {}
    duel_id = attributes.get("duel_id")
    if duel_id is not None:
        if not isinstance(duel_id, str):
            raise Refused("`event_attributes.duel_id` must be a text")
        kept["duel_id"] = duel_id
    object_id = _member(attributes, "object", "object_id")
    if object_id is not None:
        if not isinstance(object_id, (str, int)) or isinstance(object_id, bool):
            raise Refused("`event_attributes.object.object_id` must be a text or an integer")
        kept["object"] = {"object_id": object_id}
    ordinal = _member(attributes, "position", "ordinal")
    if ordinal is not None:
        if type(ordinal) is not int:
            raise Refused("`event_attributes.position.ordinal` must be an integer")
        kept["position"] = {"ordinal": ordinal}
    return kept


def _member(attributes: dict[str, Any], outer: str, inner: str) -> Any:
    content = attributes.get(outer)
    return content.get(inner) if isinstance(content, dict) else None


def _short(text: str, name: str) -> str:
    if len(text) > ID_LIMIT:
        raise Refused(f"`{name}` has {len(text)} characters; UBI allows {ID_LIMIT}")
    return text
