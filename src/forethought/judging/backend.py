"""One question to a model, through pydantic-ai: raw text and usage back, or one of four kinds of failure."""

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forethought.judging.plan import Settings
from forethought.judging.providers import PROVIDERS, Provider, provider_of
from forethought.judging.wording import Message

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.models.batch import BatchRequest

TIMEOUT = 900.0
"""Seconds to wait for a reply: high thinking takes minutes, and a reply not waited for is paid all the same."""

API_KEY = "FORETHOUGHT_API_KEY"
"""Environment variable with the key for a server named by `base_url`; without it, the provider's own is used."""


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        text: what the model wrote; may be empty.
        finish: why it stopped: `stop`, `length`, `content_filter`, ...; None if not said.
        model_served: the model that answered, as the provider names it.
        response_id: the provider's name for the reply.
        usage: tokens: `input`, `cached` (part of input), `output`, `thoughts` (part of output).
    """

    text: str
    finish: str | None
    model_served: str | None
    response_id: str | None
    usage: dict[str, int]


class Failure(Exception):
    """A request without a reply; the message says why in one line."""


class Busy(Failure):
    """The provider asks for patience (429, 500, 503, ...); nothing was paid."""

    def __init__(self, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the provider asks to wait; None if it does not say."""


class Rejected(Failure):
    """The provider does not take the request in this form (400, 422); nothing was paid."""


class Lost(Failure):
    """No answer came back although the request was sent (time-out, broken connection); it may have been paid."""


class Refused(Failure):
    """Asking again is no use: wrong key, no credit, no such model, a prompt that is too long."""


class Backend:
    """A model that can be asked, inside `async with`.

    Attributes:
        settings: model and how it is asked.
        provider: what is known of its provider.
        model: the pydantic-ai model.
    """

    def __init__(self, settings: Settings, model: "Model | None" = None):
        self.settings = settings
        self.provider: Provider = provider_of(settings.model, settings.base_url)
        self.model = make_model(settings) if model is None else model

    async def __aenter__(self) -> "Backend":
        """Open connections for requests of this event loop."""
        await self.model.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Close all connections."""
        await self.model.__aexit__(*error)
        if self.provider.name == "openrouter" and self.settings.base_url is not None:
            client: Any = self.model
            # pydantic-ai closes only clients that it has made itself.
            await client.client.close()

    def notices(self) -> list[str]:
        """What of the settings will not reach the model, one line each."""
        profile = getattr(self.model, "profile", {})
        thinks = profile.get("supports_thinking", False) or profile.get("thinking_always_enabled", False)
        if self.settings.thinking is None or thinks:
            return []
        return [
            f"note: pydantic-ai does not know {self.settings.model} as a model that thinks; "
            f"the level {self.settings.thinking!r} is not sent"
        ]

    async def ask(self, message: Message) -> Answer:
        """Send one message and wait for its reply; never tries twice.

        Raises:
            Failure: `Busy`, `Rejected`, `Lost` or `Refused`.
        """
        from pydantic_ai.direct import model_request

        request = self.request("", message)
        try:
            response = await model_request(
                self.model,
                request.messages,
                model_settings=request.model_settings,
                model_request_parameters=request.model_request_parameters,
            )
        except Exception as error:
            raise failure(error) from error
        return answer(response)

    def request(self, custom_id: str, message: Message) -> "BatchRequest":
        """A message in pydantic-ai's terms."""
        from pydantic_ai.messages import ModelRequest, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.models.batch import BatchRequest
        from pydantic_ai.output import OutputObjectDefinition

        if message.dialect == "prompted":
            parameters = ModelRequestParameters(output_mode="text")
        else:
            # In JSON mode the schema is not sent; the prompt has it.
            output = OutputObjectDefinition(json_schema=message.schema or {}, name="judgments", strict=True)
            parameters = ModelRequestParameters(
                output_mode="prompted" if message.schema is None else "native",
                output_object=output,
                prompted_output_template=False,
            )
        return BatchRequest(
            custom_id=custom_id,
            messages=[ModelRequest(parts=[UserPromptPart(content=message.prompt)])],
            model_settings=self._model_settings(live=not custom_id),
            model_request_parameters=parameters,
        )

    def _model_settings(self, *, live: bool) -> Any:
        # Retries are ours alone: a retry inside a client would be paid unseen.
        chosen: dict[str, Any] = {"max_retries": 0, "timeout": TIMEOUT} if live else {}
        if self.settings.thinking is not None:
            chosen["thinking"] = self.settings.thinking
        if self.provider.max_tokens is not None:
            chosen["max_tokens"] = self.provider.max_tokens
        if self.provider.name == "openrouter":
            chosen["openrouter_provider"] = {"require_parameters": True}
        return chosen


def make_model(settings: Settings) -> "Model":
    """The pydantic-ai model of some settings.

    Raises:
        ValueError: no such provider, its package is not installed, or its key is not set.
    """
    provider = provider_of(settings.model, settings.base_url)
    needed = f"forethought[{provider.extra}]" if provider.name in PROVIDERS else f"pydantic-ai-slim[{provider.name}]"
    missing = f"asking {settings.model} needs: pip install '{needed}'"
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    except ModuleNotFoundError:
        raise ValueError(missing) from None
    try:
        if settings.base_url is None:
            return infer_model(settings.model)
        return infer_model(settings.model, lambda name: _at(settings.base_url or "", name))
    except ImportError:
        raise ValueError(missing) from None
    except (UserError, ValueError) as error:
        variables = dict.fromkeys(re.findall(r"\b[A-Z_]+_(?:API_KEY|BASE_URL)\b", str(error)))
        reason = f"set the environment variable {' or '.join(variables)}" if variables else _one_line(error)
        if any(name.endswith("BASE_URL") for name in variables):
            reason += ", or give base_url"
        raise ValueError(f"{settings.model} cannot be asked: {reason}") from error


def answer(response: "ModelResponse") -> Answer:
    """What a response holds, as plain data."""
    usage = response.usage
    thoughts = max(usage.details.get(name, 0) for name in ("thoughts_tokens", "reasoning_tokens"))
    counts = {
        "input": usage.input_tokens,
        "cached": usage.cache_read_tokens,
        "output": usage.output_tokens,
        "thoughts": thoughts or getattr(usage, "output_reasoning_tokens", 0) or 0,
    }
    return Answer(
        text=response.text or "",
        finish=response.finish_reason,
        model_served=response.model_name,
        response_id=response.provider_response_id,
        usage={name: count for name, count in counts.items() if count},
    )


def failure(error: Exception) -> Failure:
    """What an exception of pydantic-ai means for the run."""
    from pydantic_ai import exceptions as e

    text = _one_line(error)
    if isinstance(error, e.ModelRateLimitError | e.ModelUnavailableError | e.ModelServerError):
        return Busy(text, error.retry_after)
    if isinstance(error, e.ModelQuotaExceededError | e.ModelAuthenticationError | e.ModelNotFoundError):
        return Refused(text)
    if isinstance(error, e.ModelContextWindowExceededError):
        return Refused(f"the prompt is too long for the model; plan with smaller blocks ({text})")
    if isinstance(error, e.ModelConnectionError) and error.phase in ("pool", "connect"):
        return Busy(f"no connection to the provider ({text})")
    if isinstance(error, e.ModelConnectionError | e.ModelRequestTimeout):
        return Lost(text)
    if isinstance(error, e.ModelHTTPError):
        status = error.status_code
        if status in (408, 409, 425, 429) or status >= 500:
            return Busy(text, error.retry_after)
        return Rejected(text) if status in (400, 422) else Refused(text)
    if isinstance(error, e.ModelRequestRejectedError | e.UserError):
        return Rejected(text)
    if isinstance(error, e.AgentRunError):
        # An answer came, but not one that can be read.
        return Lost(text)
    raise error


def _at(base_url: str, name: str) -> Any:
    from pydantic_ai.providers import infer_provider_class

    key = os.environ.get(API_KEY)
    kind: Any = infer_provider_class(name)
    if name == "openrouter":
        from openai import AsyncOpenAI

        return kind(
            openai_client=AsyncOpenAI(base_url=base_url, api_key=key or os.environ.get("OPENROUTER_API_KEY", "none"))
        )
    try:
        return kind(base_url=base_url, **({"api_key": key} if key else {}))
    except TypeError:
        raise ValueError(f"the provider {name} takes no base_url") from None


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]} ..."
