"""Several arms and seeds: numbers, figures, command."""

import json
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from m2po_lab.cli import main
from m2po_lab.logs.safetensors import unpack
from m2po_lab.logs.writer import LogWriter
from toy_envs import figures
from toy_envs.journal import read_metrics
from toy_envs.parallel import run_all
from toy_envs.recipes import Arm
from toy_envs.results import curves, details, entropy_by_ratio
from toy_envs.study import Study, study

ARMS = (Arm(objective="ppo", staleness=0, steps=2), Arm(objective="m2po", staleness=8, steps=2))
FIGURE_KEYS = {
    *("updates", "reward", "reward_low", "reward_high", "m2", "masked"),
    *("masked_fraction", "seconds"),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A study of two arms and two seeds, two steps each."""
    out = tmp_path_factory.mktemp("study")
    plan = Study("figure", "bandit", ARMS, (0, 1))
    study(plan, out, workers=1)
    return out, plan


def test_figure_json_has_the_names_that_others_read(done):
    out, _ = done
    data = json.loads((out / "figure.json").read_text())
    assert set(data) == {"recipe", "seeds", "arms"}
    assert data["recipe"] == "bandit"
    for arm in data["arms"].values():
        assert set(arm) == FIGURE_KEYS
        assert arm["updates"] == [0, 4]
        assert all(len(arm[key]) == 2 for key in FIGURE_KEYS - {"masked_fraction", "seconds"})


def test_curves_are_the_mean_and_the_range_over_seeds(done):
    out, plan = done
    places = [plan.place(out, ARMS[1], seed) for seed in plan.seeds]
    rewards = np.array([[m["reward"] for m in read_metrics(place)] for place in places])
    curve = curves(places)
    assert curve["reward"] == pytest.approx(rewards.mean(axis=0))
    assert curve["reward_low"] == pytest.approx(rewards.min(axis=0))
    assert curve["reward_high"] == pytest.approx(rewards.max(axis=0))
    assert curve["seconds"] > 0


def test_a_study_that_is_done_runs_nothing_again(done):
    out, plan = done
    before = (out / "figure.json").read_bytes()
    study(plan, out, workers=1)
    assert (out / "figure.json").read_bytes() == before


def test_a_run_in_another_process_leaves_the_same_bytes(done, tmp_path):
    out, plan = done
    place = plan.place(out, ARMS[1], 0)
    run_all({tmp_path / "again": ARMS[1].run("bandit", 0)}, tmp_path / "warm", workers=1)
    for name in ("metrics.jsonl", "log/step_000001.parquet", "checkpoint.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (place / name).read_bytes()


def test_the_picture_is_a_png(done):
    assert (done[0] / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_details_keep_every_seed(done):
    out, plan = done
    detail = details([plan.place(out, ARMS[1], seed) for seed in plan.seeds])
    assert len(detail["peak"]) == len(detail["final"]) == 2
    assert detail["masked_after"] is None


def test_entropy_by_ratio_averages_the_tokens_of_each_bin(tmp_path):
    d = np.log([1.005, 1.005, 1.15, 0.85, 5.0])
    LogWriter(tmp_path).write(
        "step_000000",
        [5],
        behavior_logp=np.full(5, -2.0, np.float32),
        current_logp=np.float32(-2.0 + d),
        entropy=np.array([0.1, 0.3, 1.0, 2.0, 9.0], np.float32),
    )
    found = entropy_by_ratio([tmp_path])
    bins = dict(zip(found["low"], zip(found["entropy"], found["tokens"], strict=True), strict=True))
    assert bins[0.0] == (pytest.approx(0.2), 2)
    assert bins[0.1] == (pytest.approx(1.5), 2)
    assert bins[0.01] == (None, 0)
    assert sum(found["tokens"]) == 4


def test_plots_draw_what_they_are_given():
    axes = Figure().subplots()
    curve = {"updates": [0, 4], "reward": [0.1, 0.2], "reward_low": [0, 0], "reward_high": [1, 1]}
    figures.reward({"ppo_s0": curve}, axes, 256)
    (line,) = axes.lines
    assert line.get_ydata().tolist() == [0.1, 0.2]


@pytest.mark.parametrize("sweep", ["staleness", "budget"])
def test_sweep_figures_hold_one_mark_a_seed(sweep):
    detail = {"final": [0.5, 0.9], "masked_after": [0.0, 0.1]}
    curve = {"updates": [0, 4], "reward": [0, 1], "reward_low": [0, 1], "reward_high": [0, 1]}
    arms = {"ppo_s0": detail, "ppo_s8": detail}
    draw = figures.SWEEP_FIGURES.get(sweep, figures.comparison_figure)
    picture = draw(dict.fromkeys(arms, curve), arms, "title", 256)
    marks = [line for axes in picture.axes for line in axes.lines if line.get_marker() == "."]
    assert len(marks) == 4
    assert all(len(line.get_xdata()) == 2 for line in marks)


def test_the_command_runs_and_its_log_can_be_analyzed(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["--objective", "m2po", "--staleness", "8", "--steps", "3", "--out", str(out)]
    assert main(["toy", "run", "bandit", *words]) == 0
    assert "m2po-lab analyze" in capsys.readouterr().out
    assert main(["analyze", str(out), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"]["read"] == 3 * 256
    assert [entry["step"] for entry in report["ratios"]["current/behavior"]["by_step"]] == [0, 1, 2]
    assert report["objectives"]["m2po"]["scope"] == "mini-batch"


@pytest.mark.slow
def test_the_transformer_of_a_run_is_exported_as_it_was_at_the_last_checkpoint(tmp_path, capsys):
    pytest.importorskip("torch")
    run, out = tmp_path / "run", tmp_path / "checkpoint"
    settings = ["--steps", "1", "--staleness", "0", "--quiet", "--out", str(run)]
    assert main(["toy", "run", "running-sum", *settings]) == 0
    assert main(["toy", "export", str(run), "--out", str(out)]) == 0
    capsys.readouterr()
    tensors = unpack((out / "model.safetensors").read_bytes())
    flat = np.load(run / "checkpoint.npz")["policy/weights"]
    embedding = tensors["transformer.wte.weight"]
    np.testing.assert_array_equal(embedding.ravel(), flat[: embedding.size])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "nowhere"], "nowhere holds no checkpoint of a run"),
        (["run", "bandit", "--queue", "lifo"], "queue 'lifo' is not fifo, mixed"),
        (["run", "bandit", "--mismatch", "top_p"], "unknown mismatch 'top_p'"),
        (["run", "bandit", "--staleness", "6"], "multiple of the 4 updates"),
        (["run", "bandit", "--objective", "m3po"], "did you mean m2po"),
        (["run", "bandit", "--budget", "-1"], "--budget: '-1'"),
        (["run", "bandit", "--budget", "1", "--objective", "ppo"], "budget"),
        (["run", "bandit", "--steps", "0"], "--steps: 0 is below 1"),
        (["run", "bandits"], "did you mean bandit"),
        (["figure", "bandit", "--seeds", "0"], "--seeds: 0 is below 1"),
        (["figure", "bandit", "--arms", "ppo256"], "for example m2po_s256"),
        (["sweep", "bandit", "--over", "time"], "--over: 'time' is unknown"),
    ],
)
def test_a_bad_setting_is_one_line_and_status_two(words, message, tmp_path, capsys):
    assert main(["toy", *words, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert "bug" not in lines[0]
    assert not (tmp_path / "out").exists()


def test_without_torch_the_transformer_names_its_extra_and_the_bandit_runs(tmp_path):
    words = f"'--steps', '1', '--quiet', '--out', {str(tmp_path)!r} + "
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom m2po_lab.cli import main\n"
        f"print(main(['toy', 'run', 'running-sum', {words} '/a']))\n"
        f"print(main(['toy', 'run', 'bandit', {words} '/b']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["2", "0"]
    assert "needs torch; pip install 'm2po-lab[toy]'" in result.stderr
