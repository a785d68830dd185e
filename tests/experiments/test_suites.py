"""The suites hold what the paper ran, and other scales the same experiments in small."""

import re
from itertools import product
from pathlib import Path

import pytest

from forethought.config import ConfigError
from forethought.craftax import shipped
from forethought.experiments.suites import SCALES, SUITES, UNIFORM, load_suite

EVERY = list(product(SUITES, SCALES))


def total_steps(config):
    return config.iterations * config.steps_per_iteration_total


@pytest.mark.parametrize(
    ("name", "runs"),
    [("targets", 160), ("uniform", 40), ("sensitivity", 78), ("smoothing", 80), ("screening", 30)],
)
def test_every_scale_has_all_runs(name, runs):
    for scale in SCALES:
        suite = load_suite(name, scale)
        count = 20 if (name, scale) == ("screening", "laptop") else runs
        assert (suite.name, suite.scale, len(suite.runs)) == (name, scale, count)
        assert len({run.directory for run in suite.runs}) == count
        assert [run.seed for run in suite.runs] == sorted(run.seed for run in suite.runs)


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_runs_are_what_they_are_called(name, scale):
    known = set(shipped.goals().ids)
    for run in load_suite(name, scale).runs:
        config = run.config
        assert (config.seed, config.method, config.learner) == (run.seed, run.method, run.learner)
        assert config.tasks.target == (None if run.group == UNIFORM else run.group)
        parts = [scale, run.group, run.learner, run.method, run.variant, f"seed-{run.seed}"]
        assert run.directory == "/".join(part for part in parts if part)
        assert {run.group} - {UNIFORM} <= known
        assert {*config.tasks.goals, *config.evaluation.goals} <= known
        assert run.group in (UNIFORM, *(config.evaluation.goals or known))
        assert not config.iterations % (3 if name != "tuning" else 1)
        at_thirds = not (config.iterations // 3) % config.evaluation.every
        assert at_thirds or name == "tuning" or (scale == "laptop" and run.group != UNIFORM)


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_seeds_are_paired(name, scale):
    seeds = {}
    for run in load_suite(name, scale).runs:
        seeds.setdefault((run.group, run.learner, run.method, run.variant), set()).add(run.seed)
    if name != "tuning":
        by_group = {}
        for (group, *_), found in seeds.items():
            by_group.setdefault(group, set()).add(frozenset(found))
        assert all(len(found) == 1 for found in by_group.values())


@pytest.mark.parametrize("scale", SCALES)
def test_suites_agree_on_the_runs_that_they_share(scale):
    configs = {}
    for name in SUITES:
        for run in load_suite(name, scale).runs:
            assert configs.setdefault(run.directory, run.config) == run.config
    targets, smoothing = ({r.directory for r in load_suite(n, scale).runs} for n in ("targets", "smoothing"))
    assert len(targets & smoothing) == 40


@pytest.mark.parametrize("scale", SCALES)
def test_tuning_and_targets_are_chosen_on_seeds_that_are_not_reported(scale):
    reported = {r.seed for n in ("targets", "uniform", "sensitivity", "smoothing") for r in load_suite(n, scale).runs}
    assert reported == {0, 1, 2, 3, 4}
    assert not reported & {run.seed for run in load_suite("tuning", scale).runs}
    # The paper's screening runs are among the reported ones (C.5); ours are not.
    assert {run.seed for run in load_suite("screening", scale).runs} == ({0} if scale == "paper" else {1000})


def test_the_paper_scale_is_the_papers():
    targets = load_suite("targets", "paper")
    assert targets.groups == ("reach_floor_1", "defeat_skeleton", "have_64_wood", "place_furnace")
    assert {total_steps(run.config) for run in targets.runs} == {1_509_949_440}
    assert {run.config.evaluation.every for run in targets.runs} == {15}
    assert {(run.config.tasks.target_share, run.config.tasks.fixed_target_slots) for run in targets.runs} == {(1, 4)}
    uniform = load_suite("uniform", "paper")
    assert {total_steps(run.config) for run in uniform.runs} == {3_019_898_880}
    assert {run.config.evaluation.every for run in uniform.runs} == {30}
    assert {run.method for run in uniform.runs} == {"unif", "i-diff", "alp", "alp+d+f"}
    assert {run.learner for run in uniform.runs} == {"primitive", "subroutines"}
    screening = load_suite("screening", "paper")
    assert set(screening.groups) - set(targets.groups) == {"see_orc_soldier", "obtain_stone_sword"}
    assert {run.config.iterations for run in screening.runs} == {720}
    assert {run.method for run in screening.runs} == {"target", "alp", "alp+d", "alp+f", "alp+d+f"}


@pytest.mark.parametrize("scale", SCALES)
def test_sensitivity_varies_one_setting_at_a_time(scale):
    suite = load_suite("sensitivity", scale)
    default = {run.group: run.config.curriculum for run in suite.runs if not run.variant and run.method == "alp+d+f"}
    found = {}
    for run in suite.runs:
        found.setdefault(run.group == UNIFORM, set()).add((run.method, run.variant))
        ours, theirs = run.config.curriculum, default[run.group]
        name, _, value = run.variant.partition("=")
        assert (ours.max_path_length, ours.downstream_coefficient) == {
            "": (2, 1.0),
            "L": (int(value) if name == "L" else None, 1.0),
            "alpha": (2, float(value or 0)),
        }[name]
        assert (ours == theirs) == (not run.variant)
    assert {variant for _, variant in found[True]} == {"", "L=1", "L=3", "alpha=3", "alpha=10"}
    assert {variant for _, variant in found[False]} == {"", "L=1", "L=3", "alpha=0.3", "alpha=3"}
    assert len({run.seed for run in suite.runs if run.group == UNIFORM}) == 3


def differing(ours, theirs, prefix=""):
    for name, value in ours.items():
        if isinstance(value, dict):
            yield from differing(value, theirs[name], f"{prefix}{name}.")
        elif value != theirs[name]:
            yield prefix + name


@pytest.mark.parametrize("scale", SCALES)
def test_tuning_changes_one_setting_at_a_time(scale):
    suite = load_suite("tuning", scale)
    reference = next(run.config for run in suite.runs if run.variant == "reference").model_dump(exclude={"seed"})
    for run in suite.runs:
        assert (run.group, run.method, run.learner) == (UNIFORM, "alp", "primitive")
        changed = list(differing(run.config.model_dump(exclude={"seed"}), reference))
        assert len(changed) == (run.variant != "reference")
    if scale == "paper":
        assert total_steps(suite.runs[0].config) == pytest.approx(2e9, rel=0.01)
        assert suite.runs[0].config.network.width < load_suite("uniform", "paper").runs[0].config.network.width
        candidates = {run.variant for run in suite.runs}
        assert len(candidates) == 1 + 3 + 1 + 2 + 2 + 1 + 1 + 1 + 2 + 1 + 1


def test_smoothing_gives_half_to_the_other_goals():
    shares = {(run.variant, run.config.tasks.target_share) for run in load_suite("smoothing", "paper").runs}
    assert shares == {("", 1.0), ("share=0.5", 0.5)}


def test_a_selection_keeps_the_order():
    suite = load_suite("targets")
    some = suite.select(methods=["perm", "alp"], seeds=[1, 3], groups=["have_1_stone"])
    assert [(run.method, run.seed) for run in some.runs] == [("alp", 1), ("perm", 1), ("alp", 3), ("perm", 3)]
    assert suite.select() == suite
    assert {run.variant for run in load_suite("smoothing").select(variants=[""]).runs} == {""}
    with pytest.raises(ConfigError, match=r"method: 'pirm' given; allowed in suite targets are unif, target"):
        suite.select(methods=["pirm"])


OWN = """
targets.tiny = ["gem"]
variants."L=1" = { curriculum.max_path_length = 1 }
scales.tiny.about = "seconds"
scales.tiny.targets = { preset = "toy", settings = { iterations = 5, evaluation.goals = ["wood"] } }

[[blocks]]
over = "targets"
methods = ["alp"]
variants = ["", "L=1"]
seeds = [0]
"""


def test_a_file_of_ones_own_brings_its_own_scale(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    suite = load_suite(path, "tiny")
    assert (suite.name, suite.about, suite.groups) == ("mine", "seconds", ("gem",))
    assert [run.directory for run in suite.runs] == [
        "tiny/gem/primitive/alp/seed-0",
        "tiny/gem/primitive/alp/L=1/seed-0",
    ]
    assert [run.config.curriculum.max_path_length for run in suite.runs] == [2, 1]
    # The target is always measured.
    assert suite.runs[0].config.evaluation.goals == ("wood", "gem")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds = [0]", ""), r"blocks\.0\.seeds: not set, but needed"),
        (("seeds = [0]", "seeds = []"), r"blocks\.0\.seeds: \[\] given"),
        (("seeds = [0]", "sees = [0]"), r"blocks\.0\.sees: no such field|blocks\.0\.seeds"),
        (('methods = ["alp"]', 'methods = ["alf"]'), r"blocks\.0\.methods\.0: 'alf' given; allowed is 'unif'"),
        (('"", "L=1"', '"L=2"'), r"variant 'L=2' is not in the table variants \(did you mean L=1\?\)"),
        (("max_path_length = 1", "max_path_length = 0"), r"gem/primitive/alp/L=1 at scale tiny: .*max_path_length"),
        (('targets.tiny = ["gem"]', ""), r"targets\.tiny: not set"),
        (('over = "targets"', 'over = "uniform"'), "says nothing about blocks over 'uniform'"),
        (("seeds = [0]", 'seeds = [0]\nscales = ["paper"]'), "no runs at scale tiny"),
        (("seeds = [0]", 'seeds = [0]\nscales = ["papr"]'), r"blocks\.0\.scales: 'papr' given; .*mean paper\?"),
        (('targets.tiny = ["gem"]', 'targets.tiny = ["gem"]\ntargets.tinny = ["gem"]'), "targets: 'tinny' given"),
        (("[[blocks]]", "[settings.lap]\niterations = 6\n[[blocks]]"), "settings: 'lap' given; .*mean laptop"),
        (('"", "L=1"', '""'), "no block has the variant 'L=1'"),
        (("seeds = [0]", "seeds = [0"), "not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, change, message):
    path = tmp_path / "mine.toml"
    path.write_text(OWN.replace(*change))
    with pytest.raises(ConfigError, match=message) as error:
        load_suite(path, "tiny")
    assert str(path) in str(error.value)


def test_the_documented_file_works(tmp_path):
    path = tmp_path / "mine.toml"
    documented = Path(__file__).parents[2] / "docs" / "experiments.md"
    path.write_text(
        re.search(
            r"```\{code-block\} toml\n:caption: mine.toml\n(.*?)```", documented.read_text(encoding="utf-8"), re.DOTALL
        )[1]
    )
    suite = load_suite(path, "mine")
    assert len(suite.runs) == 20
    assert {(run.variant, run.config.curriculum.warmup) for run in suite.runs} == {("", 4), ("warmup=12", 12)}


def test_the_documented_numbers_of_runs_hold():
    documented = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    for name in SUITES:
        count = int(re.search(rf"\| `{name}` \| (\d+)", documented)[1])
        assert len(load_suite(name, "paper").runs) == count


def test_two_runs_in_one_directory_are_refused(tmp_path):
    path = tmp_path / "mine.toml"
    again = '[[blocks]]\nover = "targets"\nmethods = ["alp"]\nseeds = [0]\n'
    path.write_text(OWN + again)
    assert len(load_suite(path, "tiny").runs) == 2
    path.write_text(OWN.replace('"L=1"', '"a/b"'))
    with pytest.raises(ConfigError, match="allowed are letters"):
        load_suite(path, "tiny")


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"suite: 'target' given; allowed are targets.*did you mean targets"):
        load_suite("target")
    with pytest.raises(ConfigError, match=r"^suite: there is no file mine\.toml$"):
        load_suite("mine.toml")
    with pytest.raises(ConfigError, match=r"scale: 'labtop' given; allowed are paper, gpu-hour, laptop.*laptop\?"):
        load_suite("targets", "labtop")
