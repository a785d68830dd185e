"""Batches over the wire: files, creation, results, in the shapes of the three providers that have a batch API."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from forethought.judging.aggregate import build_graph
from forethought.judging.plan import Settings

pytest.importorskip("pydantic_ai")

MODELS = {"openai:gpt-6.1-terra": "/v1", "anthropic:claude-sonnet-5-5": "", "google:gemini-3.8-flash": ""}
"""Model, and the path that its base_url has."""


class BatchDouble:
    """A loopback server with the batch APIs of OpenAI, Anthropic and Gemini.

    Attributes:
        calls: method and path of every request, in order.
        batches: requests by batch: id of the request and its body.
        creations: how often a batch was made.
        done: whether batches are shown as ended.
        alter: called with the list of (id, text) of a batch's replies; what it returns is served. A text of None is a
            request that failed.
        on_create: called before the answer to a creation; may raise `ConnectionError` to break the connection, or
            return a status to answer with instead.
    """

    def __init__(self, answer, shapes):
        self.calls, self.batches, self.files, self.creations = [], {}, {}, 0
        self.done, self.alter, self.on_create = True, lambda replies: replies, lambda: None
        self.headers = []
        self._answer, self._shapes = answer, shapes
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                double.handle(self, self.rfile.read(int(self.headers.get("content-length", 0))))

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, format, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def handle(self, handler, body):
        path = handler.path.split("?")[0]
        self.calls.append((handler.command, path))
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        parts = path.strip("/").split("/")
        creates = handler.command == "POST" and (
            path in ("/v1/batches", "/v1/messages/batches") or path.endswith(":batchGenerateContent")
        )
        headers, sent = {}, None
        if creates:
            status = None
            if path == "/v1/batches":
                lines = self.files[json.loads(body)["input_file_id"]]
            elif path == "/v1/messages/batches":
                lines = [(item["custom_id"], item["params"]) for item in json.loads(body)["requests"]]
            else:
                lines = self.files[json.loads(body)["batch"]["inputConfig"]["fileName"]]
            try:
                status = self.on_create()
            except ConnectionError:
                self._create(lines)
                handler.connection.close()
                handler.close_connection = True
                return
            if status is not None:
                self._send(
                    handler, status, {"error": {"type": "invalid_request_error", "message": "no", "code": status}}
                )
                return
            sent = self._batch(handler.path, self._create(lines))
        elif parts[-1] == "files" and handler.command == "POST":
            headers, sent = self._upload(handler, path, body)
        elif path.startswith("/uploads/"):
            name = f"files/in{len(self.files)}"
            self.files[name] = [(line["key"], line["request"]) for line in map(json.loads, body.splitlines())]
            headers, sent = {"x-goog-upload-status": "final"}, {"file": {"name": name, "uri": f"{self.url}/{name}"}}
        elif handler.command == "DELETE":
            sent = {"id": parts[-1], "object": "file", "deleted": True}
        elif path.startswith("/v1/files/"):
            sent = self._lines(path.split("/")[3], "/v1/responses", self._openai_line)
        elif parts[-1] == "results":
            sent = self._lines(parts[-2], "/v1/messages", self._anthropic_line)
        elif ":download" in path:
            sent = self._lines(parts[-1].partition(":")[0], "/models/gemini-3.8-flash:x", self._gemini_line)
        else:
            sent = self._batch(handler.path, parts[-1])
        self._send(handler, 200, sent, headers)

    def _send(self, handler, status, sent, headers=None):
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        handler.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _create(self, lines):
        self.creations += 1
        self.batches[f"b{self.creations}"] = lines
        return f"b{self.creations}"

    def _upload(self, handler, path, body):
        if path.startswith("/upload/"):
            return {"x-goog-upload-url": f"{self.url}/uploads/1", "x-goog-upload-status": "active"}, {}
        lines = [line for line in body.split(b"\r\n") if line.startswith(b'{"custom_id"')]
        requests = [json.loads(line) for part in lines for line in part.splitlines()]
        assert all((r["method"], r["url"]) == ("POST", "/v1/responses") for r in requests)
        name = f"file-{len(self.files)}"
        self.files[name] = [(request["custom_id"], request["body"]) for request in requests]
        return {}, {"id": name, "object": "file", "bytes": len(body), "created_at": 1, "filename": "b",
                    "purpose": "batch", "status": "processed"}  # fmt: skip

    def _batch(self, path, id):
        count = len(self.batches[id])
        if "/messages/batches" in path:
            made = {"created_at": "2026-11-30T10:00:00Z", "expires_at": "2026-12-01T10:00:00Z", "archived_at": None,
                    "cancel_initiated_at": None, "ended_at": "2026-11-30T11:00:00Z" if self.done else None}  # fmt: skip
            zeros = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
            return made | {
                "id": id, "type": "message_batch", "processing_status": "ended" if self.done else "in_progress",
                "request_counts": zeros | {"succeeded" if self.done else "processing": count},
                "results_url": f"{self.url}/v1/messages/batches/{id}/results" if self.done else None,
            }  # fmt: skip
        if "v1beta" in path:
            output = {"output": {"responsesFile": f"files/{id}"}} if self.done else {}
            state = "BATCH_STATE_SUCCEEDED" if self.done else "BATCH_STATE_RUNNING"
            return {
                "name": f"batches/{id}",
                "metadata": {"state": state, "createTime": "2026-11-30T10:00:00Z"} | output,
            }
        return {
            "id": id, "object": "batch", "endpoint": "/v1/responses", "input_file_id": "file-0", "created_at": 1,
            "completion_window": "24h", "status": "completed" if self.done else "in_progress", "errors": None,
            "output_file_id": f"{id}-out" if self.done else None, "error_file_id": f"{id}-err" if self.done else None,
            "request_counts": {"total": count, "completed": count, "failed": 0},
        }  # fmt: skip

    def _lines(self, name, path, line):
        """The results of a batch; failed requests are in a file of their own at OpenAI."""
        id, _, which = name.partition("-")
        prompts = {key: prompt_of(body) for key, body in self.batches[id]}
        replies = self.alter([(key, self._answer(prompt)) for key, prompt in prompts.items()])
        if which:
            replies = [reply for reply in replies if (reply[1] is None) == (which == "err")]
        made = []
        for number, (key, text) in enumerate(replies):
            size = len(prompts.get(key, "").encode()) // 4
            usage = {"input": max(size, 100), "cached": 10, "output": 300, "thoughts": 200}
            model = self.batches[id][0][1].get("model")
            reply = {"text": text, "finish": "stop", "model": model, "usage": usage}
            body = None if text is None else self._shapes({"path": path, "body": {}}, number, reply)
            made.append(json.dumps(line(key, body)))
        return "\n".join(made).encode()

    @staticmethod
    def _openai_line(key, body):
        if body is None:
            error = {"error": {"message": "boom", "type": "server_error", "code": "server_error"}}
            return {"id": "r", "custom_id": key, "response": {"status_code": 500, "body": error}, "error": None}
        return {"id": "r", "custom_id": key, "response": {"status_code": 200, "body": body}, "error": None}

    @staticmethod
    def _anthropic_line(key, body):
        error = {"type": "error", "error": {"type": "api_error", "message": "boom"}, "request_id": None}
        result = {"type": "errored", "error": error} if body is None else {"type": "succeeded", "message": body}
        return {"custom_id": key, "result": result}

    @staticmethod
    def _gemini_line(key, body):
        return {"key": key} | ({"error": {"code": 13, "message": "boom"}} if body is None else {"response": body})


def prompt_of(body):
    """The prompt in a batched request."""
    if "contents" in body:
        return body["contents"][0]["parts"][0]["text"]
    content = body.get("messages", body.get("input"))[-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


@pytest.fixture
def server(student, shapes, monkeypatch):
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "FORETHOUGHT"):
        monkeypatch.setenv(f"{name}_API_KEY", "test-key")
    made = BatchDouble(student.answer, shapes)
    yield made
    made.close()


@pytest.fixture
def planned(make, run_of, server):
    """`planned(model)`: a run of ten queries at the server."""

    def build(model):
        settings = Settings(model, base_url=server.url + MODELS[model])
        return run_of(make("learning_connectivity", 10, settings, target_block=1))

    return build


def process(run, *actions):
    """Do things with a run's batches as one process would, from start to end."""
    from forethought.judging.backend import Backend
    from forethought.judging.batches import Batches
    from forethought.judging.cost import Price

    async def main():
        async with Backend(run.plan.settings) as backend:
            with run.writing("test") as writer:
                batches = Batches(run, writer, backend, Price(1.0, 5.0))
                return [await getattr(batches, action)() for action in actions]

    return asyncio.run(main())


@pytest.mark.parametrize("model", MODELS)
def test_probe_rest_and_collection_each_in_a_process_of_its_own(model, server, planned):
    run = planned(model)
    (probe,) = process(run, "submit")
    assert (probe.is_probe, probe.queries, probe.left) == (True, 4, 6)
    (collected,) = process(run, "collect")[0]
    assert collected.detail == "4 replies, 4 of 4 judgments valid"
    (rest,) = process(run, "submit")
    assert (rest.is_probe, rest.queries, rest.left) == (False, 6, 0)
    server.done = False
    ((waiting,),) = process(run, "collect")
    assert waiting.status == "in_progress"
    server.done = True
    process(run, "collect")
    assert server.creations == 2
    assert not run.missing()
    replies = list(run.replies())
    assert [reply.via for reply in replies] == ["batch"] * 10
    # Half the price of a live request.
    assert replies[0].cost_usd == pytest.approx((replies[0].usage["input"] + 300 * 5.0) / 2e6, rel=1e-3)
    assert build_graph(run).provenance.model_served == model.partition(":")[2]
    assert any("test-key" in str(headers) for headers in server.headers)


@pytest.mark.parametrize("model", MODELS)
def test_every_batched_request_is_what_would_have_been_sent_live(model, server, planned):
    run = planned(model)
    process(run, "submit")
    (lines,) = server.batches.values()
    assert len({id for id, _ in lines}) == 4
    for id, body in lines:
        assert len(id) <= 64
        assert id.replace("-", "").isalnum()
        text = json.dumps(body)
        assert all(f'"{word}"' not in text for word in ("temperature", "top_p", "topP", "uniqueItems", "stream"))
        schema = {"openai": "text", "anthropic": "output_config", "google": "generationConfig"}[model.partition(":")[0]]
        assert "transfer_source_ids" in json.dumps(body[schema])
        assert "high" in text.lower()


@pytest.mark.parametrize("model", MODELS)
def test_results_in_any_order_with_some_failed_missing_and_foreign(model, server, planned):
    run = planned(model)
    process(run, "submit", "collect", "submit")

    def alter(replies):
        replies = replies[::-1]
        return [(replies[0][0], None), *replies[2:], ("someone-elses-a1-00000000", "x")]

    server.alter = alter
    ((standing,),) = process(run, "collect")
    assert "4 replies, 4 of 4" not in standing.detail
    for part in (
        "4 replies, 4 of 6 judgments valid",
        "1 failed",
        "1 without a result",
        "1 results of unknown requests",
    ):
        assert part in standing.detail
    texts = {reply.query: reply.text for reply in run.replies()}
    for query, text in texts.items():
        target = run.plan.wire_ids[run.plan.by_id[query].targets[0]]
        assert json.loads(text)["records"][0]["target_id"] == target
    assert sum(map(len, run.missing().values())) == 2
    # Only these two are submitted again.
    server.alter = lambda replies: replies
    (again,) = process(run, "submit")
    assert again.queries == 2
    process(run, "collect")
    assert not run.missing()


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_api_that_ignores_the_schema_gets_only_the_probe(model, server, planned):
    run = planned(model)
    server.alter = lambda replies: [(id, "Sure! Wood helps with tables.") for id, _ in replies]
    process(run, "submit", "collect")
    with pytest.raises(ValueError, match="of 4 judgments in the probe, 0 are valid"):
        process(run, "submit")
    assert server.creations == 1
    assert len(list(run.replies())) == 4


@pytest.mark.parametrize("model", MODELS)
def test_a_lost_answer_to_creation_is_asked_about_and_never_sent_again(model, server, planned):
    from forethought.judging.backend import Failure

    run = planned(model)

    def lose():
        raise ConnectionError

    server.on_create = lose
    with pytest.raises(Failure):
        process(run, "submit")
    server.on_create = lambda: None
    with pytest.raises(ValueError, match="never confirmed"):
        process(run, "submit")
    # The client tried once, and so did we.
    assert server.creations == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_refused_creation_leaves_nothing_open(model, server, planned):
    from forethought.judging.backend import Failure

    run = planned(model)
    server.on_create = lambda: 400
    with pytest.raises(Failure):
        process(run, "submit")
    server.on_create = lambda: None
    (probe,) = process(run, "submit")
    assert probe.queries == 4
    assert server.creations == 1
