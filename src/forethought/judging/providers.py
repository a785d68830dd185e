"""What is known of each provider: the response schemas it takes, its limits, its batches, the extra that it needs."""

from dataclasses import dataclass

DIALECTS = ("strict", "targets", "loose", "json", "prompted")
"""Ways to ask for structure, from the tightest to the loosest: a schema that lists all ids and counts records, one that
lists the targets' ids, one without lists and counts, any JSON, and words alone."""


@dataclass(frozen=True)
class Limits:
    """What a provider is known to refuse in a response schema; None where no limit is known.

    Attributes:
        enum_values: values of all enums together.
        long_enum_chars: characters of an enum with more than 250 values.
        properties: properties of all objects together.
        depth: nested objects and arrays.
        names_chars: characters of all property names and enum values together.
        items: sum of all `maxItems`.
        repetitions: largest product of `maxItems` along one path.
        size: bytes of the schema as JSON.
        keywords: keywords that may not occur.
    """

    enum_values: int | None = None
    long_enum_chars: int | None = None
    properties: int | None = None
    depth: int | None = None
    names_chars: int | None = None
    items: int | None = None
    repetitions: int | None = None
    size: int | None = None
    keywords: tuple[str, ...] = ("uniqueItems",)


@dataclass(frozen=True)
class Provider:
    """A provider of models.

    Attributes:
        name: the part of a model's name before the colon.
        ladder: dialects to try, best first.
        limits: of its response schemas.
        shows_schema: whether the model gets to see the response schema; where not, the prompt holds it too.
        extra: the optional group of packages that it needs.
        batches: whether it has a batch API.
        max_tokens: most tokens to ask for, thinking included, where a number must be given.
        prices: name in the price list; None for servers of one's own.
        free: whether a request costs nothing.
    """

    name: str
    ladder: tuple[str, ...] = DIALECTS
    limits: Limits = Limits()
    shows_schema: bool = True
    extra: str = "llm"
    batches: bool = False
    max_tokens: int | None = None
    prices: str | None = None
    free: bool = False


# Gemini answers a bare 400 to a schema beyond a budget that is not documented; long enums and maxItems use it up.
_GEMINI = Limits(enum_values=64, items=512, size=8000)
_OPENAI = Limits(enum_values=1000, long_enum_chars=15_000, properties=5000, depth=10, names_chars=120_000)
# Anthropic compiles a schema to a grammar and refuses large ones before the model runs.
_ANTHROPIC = Limits(enum_values=64, size=6000, keywords=("uniqueItems", "minItems", "maxItems"))
_GRAMMARS = Limits(repetitions=2000, keywords=("uniqueItems", "contains", "multipleOf"))

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("google", ("loose", "json", "prompted"), _GEMINI, extra="llm-google", batches=True, prices="google"),
        Provider("google-cloud", ("loose", "json", "prompted"), _GEMINI, extra="llm-google", prices="google"),
        Provider("openai", limits=_OPENAI, batches=True, prices="openai"),
        Provider("openai-chat", limits=_OPENAI, prices="openai"),
        Provider(
            "anthropic",
            ("targets", "loose", "prompted"),
            _ANTHROPIC,
            extra="llm-anthropic",
            batches=True,
            max_tokens=65_536,
            prices="anthropic",
        ),
        Provider("openrouter", limits=_OPENAI, prices="openrouter"),
        Provider("vllm", limits=_GRAMMARS, shows_schema=False, free=True),
        Provider("ollama", limits=_GRAMMARS, shows_schema=False, free=True),
    )
}
"""The providers that are known well, by name. Others that pydantic-ai knows work too, with careful defaults."""


def provider_of(model: str, base_url: str | None = None) -> Provider:
    """The provider of a model named `PROVIDER:NAME`.

    Args:
        model: such as `google:gemini-3.8-flash`.
        base_url: address of a server of one's own; its limits are taken to be those of a grammar engine.

    Raises:
        ValueError: the name has no provider.
    """
    name, colon, rest = model.partition(":")
    if not (name and colon and rest):
        raise ValueError(
            f"the model is {model!r}; name it as PROVIDER:NAME, such as google:gemini-3.8-flash; "
            f"well-known providers are {', '.join(PROVIDERS)}"
        )
    known = PROVIDERS.get(name, Provider(name, ("strict", "loose", "json", "prompted"), _OPENAI, prices=name))
    if base_url is not None and name in ("openai-chat", "openai"):
        return Provider(name, limits=_GRAMMARS, shows_schema=False)
    return known
