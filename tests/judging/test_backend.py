import asyncio

import pytest

from forethought.judging.backend import Backend, Busy, Lost, Refused, Rejected, failure, make_model
from forethought.judging.plan import Settings
from forethought.judging.wording import Message

e = pytest.importorskip("pydantic_ai.exceptions")


def http(kind, status, **fields):
    return e.ModelHTTPError.for_category(kind, status_code=status, model_name="m", **fields)


@pytest.mark.parametrize(
    ("error", "kind", "retry_after"),
    [
        (http(e.ModelRateLimitError, 429, retry_after=13.0), Busy, 13.0),
        (http(e.ModelUnavailableError, 503), Busy, None),
        (http(e.ModelServerError, 500), Busy, None),
        (http(e.ModelOverloadedError, 529), Busy, None),
        (e.ModelHTTPError(504, "m"), Busy, None),
        (e.ModelConnectionError("m", "refused", phase="connect"), Busy, None),
        (e.ModelConnectionError("m", "reset", phase="read"), Lost, None),
        (e.ModelTimeoutError("m", "slow", phase="read"), Lost, None),
        (e.UnexpectedModelBehavior("unreadable"), Lost, None),
        (http(e.ModelRequestRejectedError, 400), Rejected, None),
        (e.ModelHTTPError(422, "m"), Rejected, None),
        (e.UserError("no native output"), Rejected, None),
        (http(e.ModelQuotaExceededError, 429), Refused, None),
        (http(e.ModelAuthenticationError, 401), Refused, None),
        (http(e.ModelNotFoundError, 404), Refused, None),
        (http(e.ModelContextWindowExceededError, 400), Refused, None),
        (e.ModelHTTPError(451, "m"), Refused, None),
    ],
)
def test_every_error_has_a_meaning(error, kind, retry_after):
    found = failure(error)
    assert type(found) is kind
    assert getattr(found, "retry_after", None) == retry_after
    assert "\n" not in str(found)


def test_a_level_of_thinking_that_is_not_sent_is_told():
    from pydantic_ai.models.function import FunctionModel

    model = FunctionModel(lambda messages, info: None)  # pyright: ignore
    (line,) = Backend(Settings("google:m"), model).notices()
    assert "does not know google:m as a model that thinks; the level 'high' is not sent" in line
    assert Backend(Settings("google:m", thinking=None), model).notices() == []
    thinker = FunctionModel(lambda messages, info: None, profile={"supports_thinking": True})  # pyright: ignore
    assert Backend(Settings("google:m"), thinker).notices() == []


def test_what_is_not_the_providers_fault_is_raised():
    with pytest.raises(ZeroDivisionError):
        failure(ZeroDivisionError())


def test_a_long_error_is_cut():
    assert len(str(failure(e.ModelHTTPError(400, "m", "x" * 9999)))) < 600


def test_text_usage_and_finish_come_back_even_when_cut_off():
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage

    def answer(messages, info):
        usage = RequestUsage(input_tokens=100, cache_read_tokens=40, output_tokens=50, details={"thoughts_tokens": 30})
        return ModelResponse(
            parts=[ThinkingPart("hm"), TextPart('{"rec')],
            usage=usage,
            model_name="served",
            finish_reason="length",
            provider_response_id="r1",
        )

    backend = Backend(Settings("google:m"), FunctionModel(answer))
    found = asyncio.run(backend.ask(Message("p", None, "prompted")))
    assert (found.text, found.finish, found.response_id) == ('{"rec', "length", "r1")
    assert found.usage == {"input": 100, "cached": 40, "output": 50, "thoughts": 30}


def test_retries_inside_the_client_are_off_and_thinking_is_asked_for():
    backend = Backend(Settings("openrouter:m", thinking="medium"), model=object())  # pyright: ignore
    live, batch = (backend.request(id, Message("p", None, "prompted")).model_settings for id in ("", "id"))
    assert live["max_retries"] == 0
    assert live["timeout"] >= 600
    assert live["thinking"] == "medium"
    assert live["openrouter_provider"] == {"require_parameters": True}
    assert "timeout" not in batch
    anthropic = Backend(Settings("anthropic:m", thinking=None), model=object())  # pyright: ignore
    settings = anthropic.request("", Message("p", None, "prompted")).model_settings
    assert settings["max_tokens"] == 65_536
    assert "thinking" not in settings


@pytest.mark.parametrize(
    ("dialect", "mode"), [("strict", "native"), ("loose", "native"), ("json", "prompted"), ("prompted", "text")]
)
def test_dialects_in_pydantic_ais_terms(dialect, mode):
    schema = {"type": "object"} if mode == "native" else None
    backend = Backend(Settings("openai:m"), model=object())  # pyright: ignore
    parameters = backend.request("", Message("p", schema, dialect)).model_request_parameters
    assert parameters.output_mode == mode
    if mode == "native":
        assert parameters.output_object.json_schema == schema
        assert parameters.output_object.strict is True


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("openai:m", "set the environment variable OPENAI_API_KEY"),
        ("google:m", "GOOGLE_API_KEY"),
        ("anthropic:m", "ANTHROPIC_API_KEY"),
        ("vllm:m", "VLLM_BASE_URL, or give base_url"),
        ("nobody:m", "Unknown model: nobody:m"),
    ],
)
def test_what_is_missing_is_named(model, message, monkeypatch):
    for name in ("OPENAI", "GOOGLE", "GEMINI", "ANTHROPIC"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    with pytest.raises(ValueError, match=message):
        make_model(Settings(model))


@pytest.mark.parametrize(
    ("model", "extra"), [("anthropic:m", r"forethought\[llm-anthropic\]"), ("groq:m", r"pydantic-ai-slim\[groq\]")]
)
def test_a_missing_package_names_its_extra(model, extra, monkeypatch):
    import sys

    provider = model.partition(":")[0]
    for name in list(sys.modules):
        if name == provider or name.startswith((f"{provider}.", f"pydantic_ai.providers.{provider}")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, provider, None)
    with pytest.raises(ValueError, match=f"pip install '{extra}'"):
        make_model(Settings(model))


@pytest.mark.parametrize("name", ["openai", "openai-chat", "google", "anthropic", "openrouter", "vllm", "ollama"])
def test_a_server_of_ones_own_is_reached_with_a_key_of_its_own(name, monkeypatch):
    monkeypatch.setenv("FORETHOUGHT_API_KEY", "mine")
    model = make_model(Settings(f"{name}:openai/m", base_url="http://127.0.0.1:9/v1"))
    assert "127.0.0.1:9" in str(model.base_url)
