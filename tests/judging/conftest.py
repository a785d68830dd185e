"""A small domain, its plans, and a model that answers as it is told."""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from forethought.judging.plan import Settings, make_plan
from forethought.judging.prompts import Prompts, default_template
from forethought.judging.replies import CHOICES, EVALUATED, EVIDENCE, LIST_NAMES, SCRATCH, TARGET
from forethought.judging.store import create_run
from forethought.tasks import Task, TaskSet

KINDS = ("learning_connectivity", "feasibility_evidence")


@pytest.fixture
def make():
    """`make(kind, size or tasks, **options)`: a plan."""

    def build(kind="learning_connectivity", tasks=6, settings=None, **options):
        if isinstance(tasks, int):
            tasks = TaskSet([Task(f"task-{i}", f"Do thing number {i}.") for i in range(tasks)])
        prompts = Prompts(kind, default_template(kind), "An environment.", "Goals.", "A learner.", "Domain")
        return make_plan(
            tasks, prompts, settings or Settings("google:gemini-3.8-flash"), **{"repetitions": 1} | options
        )

    return build


@pytest.fixture
def run_of(tmp_path):
    """`run_of(plan)`: a new run directory."""
    return lambda plan, name="run": create_run(tmp_path / name, plan)


@pytest.fixture
def records():
    """`records(plan, query, targets, change)`: a valid reply as plain data, but for what `change` does to its list."""

    def build(plan, query, targets=None, change=None):
        ids, made = plan.wire_ids, []
        for target in query.targets if targets is None else targets:
            chosen = [ids[s] for s in query.sources if s != target][:2]
            if plan.kind in CHOICES:
                made.append({TARGET: ids[target], CHOICES[plan.kind]: chosen})
            else:
                made.append({EVALUATED: ids[target], SCRATCH: not chosen, EVIDENCE: chosen})
        if change is not None:
            change(made)
        return {LIST_NAMES[plan.kind]: made}

    return build


class Student:
    """A function for pydantic-ai's FunctionModel: reads the prompt, answers every target, and errs on cue.

    Attributes:
        prompts: all that it was asked.
        faults: what to do instead of answering, by number of the call from 1: an exception to raise, or a function of
            the reply's text.
        delay: seconds before each answer.
        finish: finish reasons by number of the call.
    """

    def __init__(self, faults=None, delay=0.0, finish=None, dialects=None):
        self.prompts = []
        self.schemas = []
        self.faults = faults or {}
        self.delay = delay
        self.finish = finish or {}
        self.dialects = dialects
        self.in_flight = self.most_in_flight = 0

    async def __call__(self, messages, info):
        from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.usage import RequestUsage

        prompt = messages[0].parts[0].content
        self.prompts.append(prompt)
        parameters = info.model_request_parameters
        self.schemas.append((parameters.output_mode, parameters.output_object))
        number = len(self.prompts)
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.in_flight -= 1
        if self.dialects is not None and parameters.output_mode not in self.dialects:
            raise ModelHTTPError.for_category(
                ModelRequestRejectedError, status_code=400, model_name="m", body="INVALID_ARGUMENT"
            )
        fault = self.faults.get(number)
        if isinstance(fault, Exception):
            raise fault
        text = self.answer(prompt)
        return ModelResponse(
            parts=[TextPart(fault(text) if fault else text)],
            usage=RequestUsage(input_tokens=len(prompt) // 4, output_tokens=1000),
            finish_reason=self.finish.get(number, "stop"),
        )

    @staticmethod
    def answer(prompt):
        """A valid reply to a prompt: the first two other goals for every target."""
        before, after = re.split(r"## (?:Target goals|Goals to evaluate)\n", prompt)
        sources, targets = (re.findall(r"^- id: (\S+) \| goal:", part, re.MULTILINE) for part in (before, after))
        if "Evidence goals" in before:
            made = [{EVALUATED: t, SCRATCH: False, EVIDENCE: [s for s in sources if s != t][:2]} for t in targets]
            return json.dumps({"judgments": made})
        name = CHOICES["interestingness" if "Mastered goals" in before else "learning_connectivity"]
        return json.dumps({"records": [{TARGET: t, name: [s for s in sources if s != t][:2]} for t in targets]})


@pytest.fixture
def student():
    """The class of talking students."""
    pytest.importorskip("pydantic_ai")
    return Student


@pytest.fixture
def ask():
    """`ask(runs, student, **options)`: a live run to its end; gives the outcome and the `Live`."""

    def go(runs, student, confirm=None, asks=None, told=None, **options):
        from pydantic_ai.models.function import FunctionModel

        from forethought.judging.backend import Backend
        from forethought.judging.live import Live, Options, Seat

        runs = runs if isinstance(runs, list) else [runs]
        with ExitStack() as held:
            seats = [Seat(run, held.enter_context(run.writing("test")), asks) for run in runs]
            backend = Backend(runs[0].plan.settings, FunctionModel(student))
            tell = (lambda _: None) if told is None else told.append
            live = Live(seats, backend, Options(**options), confirm=confirm, tell=tell)
            return live.run(), live

    return go


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A killed client breaks its connections; that is no error here."""


class Double:
    """A loopback server that answers as the providers do, each in its own shape, and misbehaves on cue.

    Attributes:
        requests: what came in: `path`, `headers` (lower-case names), `body`, `prompt`.
        answers: text of the reply sent to each request that got one, by number from 1.
        script: called with the number of the request (from 1) and the request; returns None for a valid reply, a text
            to reply with, a dict of changes (`text`, `finish`, `model`, `usage`), or a tuple `status, headers, body`.
        delay: seconds before each answer.
    """

    def __init__(self, answer, script=None, delay=0.0):
        self.requests, self.answers = [], {}
        self.script, self.delay, self._answer = script or (lambda number, request: None), delay, answer
        self._lock = threading.Lock()
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                double.serve(self, body)

            def log_message(self, format, *args):
                pass

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def serve(self, handler, body):
        request = {
            "path": handler.path,
            "headers": {name.lower(): value for name, value in handler.headers.items()},
            "body": body,
        }
        request["prompt"] = request_prompt(request)
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        time.sleep(self.delay)
        said = self.script(number, request)
        if isinstance(said, tuple):
            status, headers, sent = said
            sent = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        else:
            change = {"text": said} if isinstance(said, str) else said or {}
            reply = {
                "text": self._answer(request["prompt"]),
                "finish": "stop",
                "model": None,
                # A model has read the whole prompt.
                "usage": {"input": len(request["prompt"].encode()) // 4, "cached": 10, "output": 300, "thoughts": 200},
            } | change
            status, headers, sent = 200, {}, json.dumps(reply_body(request, number, reply)).encode()
        if status is None:
            # Nothing more is said: the connection breaks.
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        with contextlib.suppress(OSError):
            handler.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(sent)))
            handler.end_headers()
            handler.wfile.write(sent)
            handler.wfile.flush()
            if status == 200 and not isinstance(said, tuple):
                self.answers[number] = reply["text"]


def request_prompt(request):
    """The prompt in a request of any provider."""
    body = request["body"]
    if "contents" in body:
        return "".join(part["text"] for content in body["contents"] for part in content["parts"])
    messages = body.get("messages", body.get("input"))
    parts = messages[-1]["content"]
    return parts if isinstance(parts, str) else "".join(part["text"] for part in parts)


def reply_body(request, number, reply):
    """A reply in the shape of the provider whose request this is."""
    path, body, usage = request["path"], request["body"], reply["usage"]
    total = usage["input"] + usage["output"]
    if path.endswith("/responses"):
        cut = reply["finish"] == "length"
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 1, "model": reply["model"] or body["model"],
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "error": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto",
            "tools": [], "temperature": 1.0, "top_p": 1.0,
            "output": [{"id": "rs_1", "type": "reasoning", "summary": []},
                       {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                        "content": [{"type": "output_text", "text": reply["text"], "annotations": []}]}],
            "usage": {"input_tokens": usage["input"], "input_tokens_details": {"cached_tokens": usage["cached"]},
                      "output_tokens": usage["output"], "total_tokens": total,
                      "output_tokens_details": {"reasoning_tokens": usage["thoughts"]}},
        }  # fmt: skip
    if path.endswith("/chat/completions"):
        return {
            "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1,
            "model": reply["model"] or body["model"], "provider": "loopback",
            "choices": [{"index": 0, "finish_reason": reply["finish"], "native_finish_reason": reply["finish"],
                         "message": {"role": "assistant", "content": reply["text"]}}],
            "usage": {"prompt_tokens": usage["input"], "completion_tokens": usage["output"], "total_tokens": total,
                      "prompt_tokens_details": {"cached_tokens": usage["cached"]},
                      "completion_tokens_details": {"reasoning_tokens": usage["thoughts"]}},
        }  # fmt: skip
    if path.split("?")[0].endswith("/messages"):
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": reply["model"] or body["model"],
            "content": [{"type": "text", "text": reply["text"]}],
            "stop_reason": {"stop": "end_turn", "length": "max_tokens"}[reply["finish"]], "stop_sequence": None,
            "usage": {"input_tokens": usage["input"] - usage["cached"], "cache_read_input_tokens": usage["cached"],
                      "cache_creation_input_tokens": 0, "output_tokens": usage["output"]},
        }  # fmt: skip
    name = path.rpartition("/models/")[2].partition(":")[0]
    return {
        "candidates": [{"index": 0, "finishReason": {"stop": "STOP", "length": "MAX_TOKENS"}[reply["finish"]],
                        "content": {"role": "model", "parts": [{"text": reply["text"]}]}}],
        "modelVersion": reply["model"] or name, "responseId": f"gemini-{number}",
        "usageMetadata": {"promptTokenCount": usage["input"], "cachedContentTokenCount": usage["cached"],
                          "candidatesTokenCount": usage["output"] - usage["thoughts"],
                          "thoughtsTokenCount": usage["thoughts"], "totalTokenCount": total},
    }  # fmt: skip


@pytest.fixture
def double(student, monkeypatch):
    """`double(script=None, delay=0.0)`: a running `Double`; keys for all providers are set."""
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "OPENROUTER", "FORETHOUGHT"):
        monkeypatch.setenv(f"{name}_API_KEY", "test-key")
    started = []

    def start(script=None, delay=0.0):
        started.append(Double(student.answer, script, delay))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def shapes():
    """`shapes(request, number, reply)`: a reply in the shape of the provider whose request it is."""
    return reply_body
