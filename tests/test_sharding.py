"""One run over several devices and processes gives the numbers of one device. All in processes of their own."""

import os
import signal
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

from forethought import checkpoint
from forethought.cli import run
from forethought.config import load_config
from forethought.processes import own_gpus
from forethought.rundir import WALL_TIME_FIELDS, RunDirectory

TWO_DEVICES = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"


TINY = """
[tasks]
domain = "toy"
goals_per_iteration = 4
[environment]
envs_per_goal = 2
steps_per_iteration = 8
episode_limit = 5
[ppo]
rollout_length = 4
window = 2
minibatches = 2
[network]
cell_embedding = 4
cell_features = 4
convolutions = 1
channels = 4
feature_units = 8
observation_units = 8
fuse_units = 8
width = 8
blocks = 1
heads = 2
memory = 3
feedforward = 8
head_units = 8
head_layers = 1
[curriculum]
warmup = 1
[evaluation]
every = 2
episodes = 3
num_envs = 7
chunk = 4
"""


def python(script, *arguments, flags=TWO_DEVICES):
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


UPDATES = """
import jax, numpy as np
from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.sharding import Spread
from forethought.toy import ToyEnvironment

SIZES = dict(cell_embedding=4, cell_features=4, convolutions=1, channels=4, feature_units=8, observation_units=8,
             fuse_units=8, width=8, blocks=1, heads=2, memory=3, feedforward=8, head_units=8, head_layers=1)

compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None)

def play(spread):
    environment = ToyEnvironment(8, episode_limit=5)
    ppo = PPOConfig(rollout_length=4, window=2, minibatches=2, value_clip=10.0)
    learner = Learner(environment, np.eye(9, 12, dtype=np.float32), NetworkConfig(**SIZES), ppo, subroutines=True,
                      spread=spread)
    state = learner.init(jax.random.key(0))
    updates = []
    for number in range(4):
        if number % 2 == 0:
            rollout = learner.begin(jax.random.key(number), np.arange(8), np.ones(9, bool))
        state, rollout, update = learner.update(state, rollout, jax.random.key(number))
        updates.append(jax.device_get(update))
        if number == 0:
            first = jax.device_get(state.optimiser[1][0].mu)
        if number == 1:
            compiled.clear()
    assert not compiled, compiled
    return state, rollout, updates, first

def apart(a, b):
    a, b = (np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(x)]) for x in (a, b))
    return np.linalg.norm(a - b) / np.linalg.norm(a)

(state, rollout, updates, first), (state2, rollout2, updates2, first2) = (
    play(spread) for spread in (None, Spread(tuple(jax.devices()))))
assert len(rollout2.hidden.sharding.device_set) == 2
assert rollout2.hidden.sharding.shard_shape(rollout2.hidden.shape)[2] == 4
assert rollout2.environment.world.tiles.addressable_shards[0].data.shape[0] == 4
assert sum(update.done.sum() for update in updates) > 8
for one, two in zip(updates, updates2):
    np.testing.assert_array_equal(one.done, two.done)
    np.testing.assert_array_equal(one.success, two.success)
    np.testing.assert_array_equal(one.calls, two.calls)
# Adam's first moment after an update is made of the gradients.
assert apart(first, first2) < 1e-6, apart(first, first2)
assert apart(jax.device_get(state.network), jax.device_get(state2.network)) < 1e-6
for leaf in jax.tree.leaves(state2):
    copies = [np.asarray(shard.data) for shard in leaf.addressable_shards]
    assert len(copies) == 2 and copies[0].tobytes() == copies[1].tobytes()

try:
    Learner(ToyEnvironment(6), np.eye(9), NetworkConfig(**SIZES), PPOConfig(rollout_length=4, window=2, minibatches=2),
            spread=Spread(tuple(jax.devices())))
except ValueError as error:
    assert "2 devices, but their number must divide the 3 environments of a minibatch" in str(error), error
else:
    raise AssertionError("3 environments on 2 devices")
"""


def test_two_devices_learn_what_one_learns():
    python(UPDATES)


TRAIN = """
import os, signal, sys
from forethought.config import load_config
from forethought.progress import SilentReporter
from forethought.training import train

class Stop(SilentReporter):
    def iteration(self, row, top):
        if row["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGTERM)

config = load_config(sys.argv[1], overrides={"iterations": 4})
path, devices = sys.argv[2], [int(number) for number in sys.argv[3:]]
for number in devices:
    resume = number != devices[0]
    train(config, path, resume=resume, reporter=SilentReporter() if resume or len(devices) == 1 else Stop(),
          devices=number)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run on one device."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.toml").write_text(TINY)
    python(TRAIN, folder / "tiny.toml", folder / "alone", 1)
    return folder / "alone"


def assert_same_run(path, expected):
    """The same goals, episodes and evaluations; what the learner computes up to rounding."""
    ours, theirs = RunDirectory(path), RunDirectory(expected)
    for rows, others in ((ours.evaluations(), theirs.evaluations()), (ours.curriculum(), theirs.curriculum())):
        assert len(rows)
        assert rows.equals(others)
    rows, others = (run.metrics().drop(WALL_TIME_FIELDS, strict=False).to_numpy() for run in (ours, theirs))
    assert len(rows) == 4
    np.testing.assert_allclose(rows, others, rtol=1e-4, atol=1e-5)
    saved, other = (checkpoint.load_latest(run.checkpoints) for run in (ours, theirs))
    assert saved.iteration == other.iteration == 4
    flat, expected = (checkpoint._flatten(found.arrays["learner"]["network"]) for found in (saved, other))
    for name, value in flat.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_devices(alone, tmp_path):
    python(TRAIN, alone.parent / "tiny.toml", tmp_path / "run", 2, 1)
    assert_same_run(tmp_path / "run", alone)
    meta = RunDirectory(tmp_path / "run").meta
    assert meta["device"] == "cpu (2 devices)"
    assert meta["continued"][0]["iteration"] == 2
    assert "devices" not in meta["continued"][0]["device"]


MAIN = "import sys; from forethought.cli import main; sys.exit(main())"


def free_port(first=0):
    """A port that nobody has, from a number on."""
    for port in range(first, 65536):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return free.getsockname()[1]
    raise AssertionError("no port is free")


def both(commands, environments=({}, {})):
    """What two processes at the same time say, and how they end."""
    common = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", *map(str, command)],
            env=common | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, environment in zip(commands, environments, strict=True)
    ]
    try:
        return [(*process.communicate(timeout=1200), process.returncode) for process in started]
    finally:
        for process in started:
            process.kill()


def together(*arguments):
    """The results of a command in two processes that find each other."""
    found = ["--processes", 2, "--coordinator", f"127.0.0.1:{free_port()}"]
    return both([[MAIN, *arguments, *found, "--process", number] for number in range(2)])


@pytest.mark.slow
@pytest.mark.craftax
@pytest.mark.parametrize("backend", ["engine", "jax"])
def test_craftax_is_the_same_on_two_devices(backend, tmp_path):
    if backend == "engine":
        pytest.importorskip("craftax_native")
    smaller = TINY.replace('"toy"', '"craftax"\ngoals = ["have_1_wood", "see_diamond"]').replace("= 7", "= 4")
    (tmp_path / "small.toml").write_text(smaller)
    for devices in (1, 2):
        flags = ["--iterations", 4, "--env", backend, "--devices", devices, "--out", tmp_path / str(devices)]
        python(MAIN, "train", tmp_path / "small.toml", *flags)
    assert RunDirectory(tmp_path / "2").meta["device"] == "cpu (2 devices)"
    assert_same_run(tmp_path / "2", tmp_path / "1")


@pytest.mark.slow
def test_seeds_side_by_side_are_runs_like_any_other(alone, tmp_path):
    flags = ["--iterations", 4, "--seeds", 0, 1, "--devices", 2, "--out", tmp_path]
    python(MAIN, "train", alone.parent / "tiny.toml", *flags)
    assert_same_run(tmp_path / "seed-0", alone)
    assert load_config(tmp_path / "seed-1" / "config.toml").seed == 1


@pytest.mark.slow
def test_two_processes_are_one_run(alone, tmp_path):
    results = together("train", alone.parent / "tiny.toml", "--iterations", 4, "--out", tmp_path / "run")
    assert [code for *_, code in results] == [0, 0], results
    assert_same_run(tmp_path / "run", alone)
    # The second process says nothing of the course of the run.
    assert "iteration" in results[0][1]
    assert "iteration" not in results[1][1]


MEMBER = """
import os, signal, sys
from forethought import processes
from forethought.config import load_config
from forethought.progress import SilentReporter
from forethought.rundir import CONFIG
from forethought.training import train

config, path, number, port, at, kill = *sys.argv[1:3], *map(int, sys.argv[3:7])
resume = os.path.exists(path)
processes.join(f"127.0.0.1:{port}", 2, number)
with open(f"{path}.{number}", "w") as file:
    file.write(str(os.getpid()))

class Stop(SilentReporter):
    def iteration(self, row, top):
        if row["iteration"] == at:
            os.kill(int(open(f"{path}.1").read()), kill)
            if kill == signal.SIGKILL:
                os.kill(os.getpid(), kill)

result = train(load_config(config, overrides={"iterations": 4, "checkpoint_minutes": 0}), path, resume=resume,
               reporter=Stop())
sys.exit(85 if result.interrupted else 0)
"""


@pytest.mark.slow
def test_a_run_of_two_processes_goes_on_with_another_number_after_a_kill_and_after_a_signal_to_one(alone, tmp_path):
    path = tmp_path / "run"
    for at, how, expected in ((2, signal.SIGKILL, -signal.SIGKILL), (2, signal.SIGTERM, 85)):
        port = free_port()
        results = both([[MEMBER, alone.parent / "tiny.toml", path, number, port, at, int(how)] for number in range(2)])
        assert [code for *_, code in results] == [expected] * 2, results
    # The signal comes before or after the process has said that there was none.
    saved = checkpoint.iterations(path / "checkpoints")[-1]
    assert saved in (2, 3)
    python("import sys; from forethought.cli import run; sys.exit(run(['train', sys.argv[1], '--devices', '2']))", path)
    assert [session["iteration"] for session in RunDirectory(path).meta["continued"]] == [1, saved]
    assert_same_run(path, alone)


AUTO = """
import jax, sys
from jax._src.xla_bridge import CUDA_VISIBLE_DEVICES
from forethought import processes
processes.join(None, None, None, 2)
print(jax.process_index(), jax.process_count(), processes.share(sys.argv[1]), CUDA_VISIBLE_DEVICES.value)
"""


def test_processes_learn_from_slurm_who_they_are_and_take_their_own_gpus():
    """Two tasks on one host, of whose GPUs each is to have two."""
    least = 61440  # JAX makes the port of the job's number.
    job = {"SLURM_JOB_ID": str(free_port(least) - least), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
    tasks = [job | {"SLURM_PROCID": number, "SLURM_LOCALID": number} for number in "01"]
    results = both([[AUTO, "first"], [AUTO, "second"]], tasks)
    assert [code for *_, code in results] == [0, 0], results
    assert [out.splitlines()[-1] for out, *_ in results] == ["0 2 first 0,1", "1 2 first 2,3"]


def test_without_a_scheduler_nothing_tells_who_they_are(tmp_path):
    command = [sys.executable, "-c", MAIN, "train", "toy", "--processes", "auto", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nothing here tells who they are, as Slurm, Open MPI or a cloud's service would" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("environment", "devices", "own"),
    [
        ({}, 4, None),
        ({"SLURM_LOCALID": "0"}, 4, [0, 1, 2, 3]),  # One task a host.
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "3"}, 1, [3]),
        ({"SLURM_LOCALID": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}, 1, [3]),  # All in one task of Slurm.
        ({"SLURM_LOCALID": "3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 1, [3]),
        ({"SLURM_LOCALID": "3", "CUDA_VISIBLE_DEVICES": "0"}, 1, [0]),  # Bound: it sees its own alone.
        ({"SLURM_LOCALID": "1", "CUDA_VISIBLE_DEVICES": "4,5"}, 2, [0, 1]),
        ({"SLURM_LOCALID": "1", "CUDA_VISIBLE_DEVICES": ""}, 1, []),
    ],
)
def test_a_process_takes_its_own_gpus(environment, devices, own):
    assert own_gpus(environment, devices) == own


SEEDS = """
import jax, numpy as np
from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.learner.seeds import SeededLearners
from forethought.toy import ToyEnvironment

SIZES = dict(cell_embedding=4, cell_features=4, convolutions=1, channels=4, feature_units=8, observation_units=8,
             fuse_units=8, width=8, blocks=1, heads=2, memory=3, feedforward=8, head_units=8, head_layers=1)
ppo = PPOConfig(rollout_length=4, window=2, minibatches=2)
learner = Learner(ToyEnvironment(4, episode_limit=5), np.eye(9, 12, dtype=np.float32), NetworkConfig(**SIZES), ppo,
                  subroutines=True)
callable = np.arange(18).reshape(2, 9) % 2 == 0
keys = jax.vmap(jax.random.key)(np.arange(2))
goals = np.arange(8).reshape(2, 4)
both = SeededLearners(learner, 2, jax.devices())
state, rollout = both.init(keys), both.begin(keys, goals, callable)
for number in range(2):
    state, rollout, update = both.update(state, rollout, jax.vmap(jax.random.fold_in, (0, None))(keys, number))
text = both._update.lower(state, rollout, both._embeddings, jax.device_put(keys, both._spread)).compile().as_text()
assert not any(word in text for word in ("all-reduce", "all-gather", "all-to-all", "collective-permute"))
for seed in range(2):
    alone, its = learner.init(keys[seed]), learner.begin(keys[seed], goals[seed], callable[seed])
    for number in range(2):
        alone, its, expected = learner.update(alone, its, jax.random.fold_in(keys[seed], number))
    got = both.of_seed((state, rollout.hidden, update), seed)
    assert all(leaf.devices() == {jax.devices()[seed]} for leaf in jax.tree.leaves(got))
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves((alone, its.hidden, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert jax.tree.all(jax.tree.map(np.array_equal, both.reports(update)[seed], got[2]))
for count, devices in ((3, 2), (0, 1)):
    try:
        SeededLearners(learner, count, jax.devices()[:devices])
    except ValueError as error:
        assert f"must divide that of the {count} seeds" in str(error), error
    else:
        raise AssertionError(count)
"""


@pytest.mark.slow
def test_seeds_side_by_side_learn_what_each_learns_alone_and_send_nothing():
    python(SEEDS)


ENGINE = """
import jax, numpy as np
from forethought.craftax.engine import EngineEnvironment
from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.parts import DeviceParts, Lanes
from forethought.sharding import Spread

SIZES = dict(cell_embedding=2, cell_features=2, convolutions=0, channels=2, feature_units=4, observation_units=8,
             fuse_units=8, width=4, blocks=1, heads=1, memory=2, feedforward=4, head_units=4, head_layers=1)
IDS = ("have_1_wood", "see_diamond")
spread = Spread(tuple(jax.devices()))

def part(envs):
    return EngineEnvironment(envs, IDS, episode_limit=3, threads=1)

results = []
for environment, options in (
    (part(8), {"host_loop": True}),
    (DeviceParts(part, 8, spread), {"spread": spread}),
    (Lanes(part, 8), {"host_loop": True}),
    (Lanes(part, 8, spread), {"host_loop": True, "spread": spread}),
):
    ppo = PPOConfig(rollout_length=4, window=4, minibatches=1)
    learner = Learner(environment, np.eye(2, dtype=np.float32), NetworkConfig(**SIZES), ppo, **options)
    state, rollout = learner.init(jax.random.key(0)), learner.begin(jax.random.key(1), np.arange(8) % 2)
    for number in range(2):
        state, rollout, update = learner.update(state, rollout, jax.random.key(number))
    counts = {name: float(value) for name, value in environment.metrics(rollout.environment).items()}
    results.append((jax.device_get((update.done, rollout.observation, rollout.hidden, state)), counts))
    load = learner.load()
    assert set(load) == ({"stepping_share", "acting_share"} if options.get("host_loop") else set()), load
    assert all(0 < share <= 1 for share in load.values()), load
(expected, counts), *others = results
assert counts["episodes"] == 16 and counts["steps"] == 64, counts
for got, its_counts in others:
    assert its_counts == counts
    for one, other in zip(*map(jax.tree.leaves, (got, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.slow
def test_the_engine_plays_the_same_in_parts_on_devices_and_in_lanes():
    pytest.importorskip("craftax_native")
    python(ENGINE)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices", "0"], "--devices: '0' given; allowed is a whole number from 1 on"),
        (["--process", "-1"], "--process: '-1' given"),
        (["--processes", "two"], "--processes: 'two' given"),
        (
            ["--processes", "2"],
            "--processes 2 needs --coordinator HOST:PORT and --process from 0 to 1, got None and None",
        ),
        (["--processes", "2", "--process", "2", "--coordinator", "here:1"], "got here:1 and 2"),
        (["--device", "cpu", "--devices", "1000"], "devices: 1000 given; allowed is 1 to the number of CPUs"),
    ],
)
def test_a_machine_that_cannot_be_is_named(flags, message, capsys, tmp_path):
    assert len(jax.devices()) < 1000
    assert run(["train", "toy", "--out", str(tmp_path / "run"), *flags]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
