import sys

import pytest

from forethought.judging import cost
from forethought.judging.cost import Estimate, Price, estimate, price_of, tokens


def test_a_price_is_for_a_million_tokens():
    price = Price(2.0, 10.0, 0.2)
    assert price.of({"input": 1_000_000}) == 2.0
    assert price.of({"output": 100_000, "thoughts": 90_000}) == 1.0
    assert price.of({"input": 1_000_000, "cached": 500_000}) == pytest.approx(1.1)
    assert price.of({"input": 1_000_000}, batch=True) == 1.0
    assert Price(2.0, 10.0).of({"input": 1_000_000, "cached": 500_000}) == 2.0
    assert price.of({}) == 0
    for wrong in ((-1.0, 1.0), (1.0, float("nan")), (1.0, 2.0, float("inf"))):
        with pytest.raises(ValueError, match="price is"):
            Price(*wrong)


def test_an_estimate_counts_prompts_and_replies(make):
    plan = make(tasks=32, target_block=8)
    need = estimate(plan)
    assert need.queries == len(plan.queries) == 4
    assert need.visible_tokens == 32 * cost.VISIBLE["learning_connectivity"]
    assert need.usage(1000) == {"input": need.input_tokens, "output": need.visible_tokens + 4000}
    half = estimate(plan, plan.queries[:2])
    assert half.queries == 2
    assert half.input_tokens == pytest.approx(need.input_tokens / 2, rel=0.02)
    assert estimate(plan, ()) == Estimate(0, 0, 0)
    assert need + half == Estimate(6, need.input_tokens + half.input_tokens, need.visible_tokens + half.visible_tokens)


def test_tokens_of_other_scripts_are_not_underrated():
    assert tokens("walk" * 100) == 100
    assert tokens("歩く" * 100) == 150


def test_the_benchmarks_estimate_agrees_with_a_tokenizer():
    from forethought.craftax.shipped import goals, prompts
    from forethought.judging.plan import Settings, make_plan

    plans = [
        make_plan(goals(), prompts(kind), Settings("google:gemini-3.8-flash"))
        for kind in ("learning_connectivity", "feasibility_evidence")
    ]
    total = estimate(plans[0]) + estimate(plans[1])
    assert total.queries == 480
    # 3.97 million were counted by cl100k for the paper's own texts, which are about as long.
    assert total.input_tokens == pytest.approx(3.97e6, rel=0.1)


def test_listed_prices():
    pytest.importorskip("genai_prices")
    assert price_of("anthropic:claude-sonnet-5-5") == Price(2.0, 10.0, 0.1)
    assert price_of("openai:no-such-model") is None
    assert price_of("deepseek-of-mine:x") is None


def test_servers_of_ones_own_are_free_or_unknown():
    assert price_of("ollama:qwen") == Price(0.0, 0.0)
    assert price_of("openai-chat:m", "http://localhost:1/v1") is None


def test_without_the_price_list_prices_are_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_of("openai:gpt-6.1-terra") is None
