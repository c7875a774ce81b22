"""What a request names by an upstream's own id of it is not routed among several upstreams."""

import pytest

from hydra_core.server.chat import RequestError, require_whole
from hydra_core.server.wire import STATE, form_of_path
from tests.server.conftest import HARD

USER = {"role": "user", "content": HARD}
IMAGE = {"type": "input_image", "file_id": "file-1"}
VECTORS = {"type": "file_search", "vector_store_ids": ["vs_1"]}
PYTHON = {"type": "code_interpreter", "container": {"type": "auto"}}


def said(part):
    """A user's message with a part beside its text."""
    return {"role": "user", "content": [{"type": "text", "text": HARD}, part]}


def document(kind):
    """A file of the Messages form by its id."""
    return {"type": kind, "source": {"type": "file", "file_id": "file-1"}}


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        (
            "/responses",
            {"input": HARD, "previous_response_id": "r"},
            "previous_response_id: refers",
        ),
        ("/responses", {"input": HARD, "background": True}, "background: refers"),
        ("/responses", {"input": HARD, "prompt": {"id": "pmpt_1"}}, "prompt: refers"),
        ("/responses", {"prompt": {"id": "pmpt_1"}}, "prompt: refers"),
        ("/responses", {"input": [{"type": "item_reference", "id": "m"}]}, "input[0]: refers"),
        ("/responses", {"input": [USER, {"id": "msg_1"}]}, "input[1]: refers"),
        ("/responses", {"input": [said(IMAGE)]}, "input[0].content[1]: refers"),
        (
            "/responses",
            {"input": [USER, {"type": "computer_call_output", "output": IMAGE}]},
            "input[1].output: refers",
        ),
        ("/responses", {"input": HARD, "tools": [PYTHON, VECTORS]}, "tools[1]: refers"),
        ("/responses", {"input": HARD, "tools": [PYTHON | {"container": "c"}]}, "tools[0]: refers"),
        (
            "/responses",
            {"input": HARD, "tools": [PYTHON | {"container": {"file_ids": ["f"]}}]},
            "tools[0]: refers",
        ),
        (
            "/responses",
            {"input": HARD, "tools": [{"type": "shell", "environment": {"container_id": "c"}}]},
            "tools[0]: refers",
        ),
        ("/messages", {"messages": [USER], "container": "container_1"}, "container: refers"),
        ("/messages", {"messages": [USER], "container": {"id": "c"}}, "container: refers"),
        (
            "chat/completions",
            {"messages": [USER, {"role": "assistant", "audio": {"id": "audio_1"}}, USER]},
            "messages[1]: refers",
        ),
        ("/messages", {"messages": [said(document("document"))]}, "messages[0].content[1]: refers"),
        ("/messages", {"messages": [said(document("image"))]}, "messages[0].content[1]: refers"),
        (
            "/messages",
            {"messages": [said({"type": "tool_result", "content": [document("image")]})]},
            "messages[0].content[1].content[0]: refers",
        ),
        (
            "chat/completions",
            {"messages": [said({"type": "file", "file": {"file_id": "f"}})]},
            "messages[0].content[1]: refers",
        ),
    ],
)
def test_what_an_upstream_stores_is_refused_with_its_place(path, body, told):
    with pytest.raises(RequestError) as caught:
        require_whole(body, form_of_path(path), shared=False)
    assert told in str(caught.value)
    require_whole(body | {"model": "gpt-5.4"}, form_of_path(path), shared=False)
    if not body.keys() & STATE:
        require_whole(body, form_of_path(path), shared=True)


CITED = {"type": "output_text", "text": "x", "annotations": [{"file_id": "f"}]}
USED = {"type": "tool_use", "id": "t", "name": "f", "input": {"file_id": "1"}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/responses", {"input": [said(IMAGE | {"image_url": "u", "file_id": None})]}),
        ("/responses", {"input": [USER, {"role": "assistant", "content": [CITED], "id": "m"}]}),
        ("/messages", {"messages": [USER, {"role": "assistant", "content": [USED]}]}),
        ("/messages", {"messages": [USER], "container": {"skills": [{"skill_id": "pptx"}]}}),
        (
            "chat/completions",
            {"messages": [USER, {"role": "assistant", "content": "x", "audio": None}, USER]},
        ),
        (
            "/responses",
            {"input": HARD, "tools": [PYTHON, {"parameters": {"properties": {"file_id": {}}}}]},
        ),
    ],
)
def test_an_id_that_names_nothing_stored_is_routed(path, body):
    require_whole(body, form_of_path(path), shared=False)
