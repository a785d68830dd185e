"""Presets say what the paper says; bad settings are refused in one line."""

import subprocess
import sys
import typing

import pytest

from forethought.config import (
    PRESETS,
    ConfigError,
    Method,
    RunConfig,
    field_types,
    load_config,
    merge,
    parse,
    read_layer,
)

TARGET = {"tasks.target": "place_furnace"}

APPENDIX_A = {
    "curriculum.exponent": 0.5,
    "curriculum.progress": "absolute",
    "curriculum.downstream_coefficient": 1.0,
    "curriculum.max_path_length": 2,
    "curriculum.path_discount": 0.3,
    "curriculum.solved_threshold": 0.9,
    "curriculum.feasibility_threshold": 0.05,
    "curriculum.smoothing": 0.3,
    "curriculum.max_observations": 7,
    "curriculum.lookback": 12,
}
SECTION_5_2 = {
    "method": "alp+d+f",
    "tasks.goals_per_iteration": 64,
    "environment.envs_per_goal": 8,
    "curriculum.exploration": 0.2,
    "curriculum.feasibility_share": 0.5,
    "tasks.domain": "craftax",
    "tasks.goals": (),
    "learner": "primitive",
}
APPENDIX_D = {"curriculum.warmup": 16}
APPENDIX_C2 = {
    "network.cell_embedding": 16,
    "network.cell_features": 32,
    "network.convolutions": 2,
    "network.channels": 32,
    "network.feature_units": 64,
    "network.observation_units": 512,
    "network.fuse_units": 512,
    "network.width": 256,
    "network.blocks": 2,
    "network.heads": 4,
    "network.memory": 64,
    "network.gate_bias": 2.0,
    "network.feedforward": 256,
    "network.head_units": 512,
    "network.head_layers": 2,
    "ppo.window": 64,
}
APPENDIX_C3 = {
    "environment.steps_per_iteration": 4096,
    "environment.episode_limit": 4096,
    "ppo.rollout_length": 256,
    "ppo.minibatches": 8,
    "ppo.epochs": 1,
    "ppo.clip": 0.2,
    "ppo.value_clip": 0.2,
    "ppo.discount": 0.999,
    "ppo.gae_lambda": 0.97,
    "ppo.value_coefficient": 0.5,
    "ppo.entropy_coefficient": 0.005,
    "ppo.learning_rate": 2e-4,
    "ppo.adam_epsilon": 1e-5,
    "ppo.max_gradient_norm": 1.0,
    "ppo.bootstrap_at_time_limit": False,
}
APPENDIX_C5 = {"evaluation.episodes": 128, "evaluation.goals": ()}
EVERYWHERE = APPENDIX_A | SECTION_5_2 | APPENDIX_D | APPENDIX_C2 | APPENDIX_C3 | APPENDIX_C5
UNIFORM = {"iterations": 1440, "evaluation.every": 30, "tasks.target": None}
SINGLE_TARGET = {
    "iterations": 720,
    "evaluation.every": 15,
    "tasks.fixed_target_slots": 4,
    "tasks.target_share": 1.0,
}


def value(config: RunConfig, name: str):
    for part in name.split("."):
        config = getattr(config, part)
    return config


@pytest.mark.parametrize(("name", "expected"), [*(EVERYWHERE | UNIFORM).items()])
def test_the_paper_preset_has_the_papers_number(name: str, expected):
    assert value(load_config("paper"), name) == expected


@pytest.mark.parametrize(("name", "expected"), [*(EVERYWHERE | SINGLE_TARGET).items()])
def test_the_single_target_preset_has_the_papers_number(name: str, expected):
    assert value(load_config("paper-target", overrides=TARGET), name) == expected


@pytest.mark.parametrize("name", EVERYWHERE | UNIFORM)
def test_the_defaults_are_the_papers(name: str):
    assert value(RunConfig(), name) == value(load_config("paper"), name)


def test_the_papers_sizes_follow():
    config = load_config("paper")
    assert config.num_envs == 512
    assert config.updates_per_iteration == 16
    assert config.steps_per_iteration_total == 2_097_152
    assert config.iterations * config.steps_per_iteration_total == pytest.approx(3.0e9, rel=0.01)
    assert config.embeddings == "qwen3-embedding-4b-512.npz"


def test_fixed_draws_need_a_target_and_another_method_than_target():
    assert load_config("paper").fixed_selections == {}
    assert load_config("paper-target", overrides=TARGET).fixed_selections == {"place_furnace": 4}
    assert load_config("paper-target", overrides=TARGET | {"method": "unif"}).fixed_selections == {"place_furnace": 4}
    assert load_config("paper-target", overrides=TARGET | {"method": "target"}).fixed_selections == {}


@pytest.mark.parametrize("name", ["demo", "laptop"])
def test_the_small_presets_shrink_everything_together(name: str):
    config = load_config(name)
    assert len(config.tasks.goals) == 32
    assert config.tasks.goals_per_iteration >= 16
    assert config.environment.episode_limit == config.environment.steps_per_iteration == 512
    assert config.curriculum.warmup == 4
    assert config.curriculum.warmup <= 0.4 * config.iterations
    assert config.evaluation.episodes == 32
    assert 0 < len(config.evaluation.goals) <= 10
    if name == "demo":
        assert config.fixed_selections == {config.tasks.target: 1}
        assert config.tasks.target in config.evaluation.goals


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "paper-target"])
def test_the_resolved_toml_gives_the_same_configuration(name: str, tmp_path):
    config = load_config(name)
    file = tmp_path / "config.toml"
    file.write_text(config.to_toml(), encoding="utf-8")
    assert load_config(file) == config
    assert load_config(file).to_toml() == config.to_toml()


def test_the_resolved_toml_hides_no_default():
    written = RunConfig().to_toml()
    for name in field_types():
        if name not in ("tasks.target", "tasks.own_goals", "interestingness"):
            assert f"{name.rsplit('.')[-1]} = " in written


def test_later_layers_and_overrides_win(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("iterations = 7\n[ppo]\nminibatches = 2\n", encoding="utf-8")
    config = load_config("demo", file, overrides={"ppo.epochs": "3", "seed": 5})
    assert (config.iterations, config.ppo.minibatches, config.ppo.epochs, config.seed) == (7, 2, 3, 5)
    assert config.ppo.learning_rate == load_config("demo").ppo.learning_rate
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}) == {"a": {"b": 1, "c": 3}}


def test_the_digest_tells_what_is_computed():
    config = load_config("demo")
    same = load_config("demo", overrides={"seed": 9, "device": "cpu", "checkpoint_minutes": 1})
    assert same.digest == config.digest
    assert load_config("demo", overrides={"ppo.discount": 0.9}).digest != config.digest


def test_every_method_of_the_curriculum_can_be_named():
    from forethought.curriculum import METHODS

    assert set(typing.get_args(Method)) == set(METHODS)


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        ({"ppo.minibatches": 7}, ["ppo.minibatches: 7", "512"]),
        ({"environment.steps_per_iteration": 1000}, ["environment.steps_per_iteration: 1000", "256"]),
        ({"environment.envs_per_goal": 0}, ["environment.envs_per_goal: 0", "greater than or equal to 1"]),
        ({"iterations": "many"}, ["iterations: 'many'", "integer"]),
        ({"method": "alpdf"}, ["method: 'alpdf'", "'alp+d+f'"]),
        ({"method": "target"}, ["tasks.target", "needs"]),
        ({"tasks.target": ""}, ["tasks.target: not set"]),
        ({"method": "omni"}, ["interestingness: not set", "'omni'"]),
        ({"tasks.target": "a", "tasks.fixed_target_slots": 65}, ["tasks.fixed_target_slots: 65", "64"]),
        ({"tasks.target_share": 1.5}, ["tasks.target_share: 1.5"]),
        ({"tasks.goals": ["a", "b"], "tasks.target": "c"}, ["tasks.target: 'c'", "tasks.goals"]),
        ({"tasks.goals": ["a", "a"]}, ["tasks.goals: a given more than once"]),
        (
            {"tasks.goals": ["have_1_wood"], "evaluation.goals": ["have_1_woods"]},
            ["evaluation.goals: 'have_1_woods'", "did you mean have_1_wood?"],
        ),
        ({"network.heads": 3}, ["heads", "3", "256"]),
        ({"ppo.window": 100}, ["window", "100", "256"]),
        ({"ppo.windw": 64}, ["ppo.windw: no such field", "did you mean ppo.window?"]),
        ({"curriculum.warmpu": 64}, ["curriculum.warmpu: no such field", "did you mean curriculum.warmup?"]),
        ({"curriculum.smoothing": 3}, ["curriculum", "smoothing", "3"]),
        ({"curriculum.smoothing": float("nan")}, ["curriculum", "smoothing", "nan"]),
        ({"evaluation.episodes": 0}, ["evaluation.episodes: 0"]),
        ({"seed": -1}, ["seed: -1"]),
        ({"device": "tpu"}, ["device: 'tpu'", "'gpu'"]),
    ],
)
def test_bad_settings_name_field_value_and_what_is_allowed(overrides: dict, parts: list[str]):
    with pytest.raises(ConfigError) as caught:
        load_config("paper", overrides=overrides)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"papr: no such file; presets are .* \(did you mean paper\?\)"):
        read_layer("papr")
    broken = tmp_path / "broken.toml"
    broken.write_text("iterations = ", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.toml: not valid TOML"):
        read_layer(broken)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_layer(tmp_path)
    with pytest.raises(ConfigError, match="tasks"):
        parse({"tasks": 3})


def test_a_configuration_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        RunConfig().seed = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_configuration_needs_neither_jax_nor_numpy():
    code = "import sys, forethought.config; print({'jax', 'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
