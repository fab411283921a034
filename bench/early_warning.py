"""Which statistics foresee a collapse, how early, and how often they cry wolf.

    python bench/early_warning.py                         evaluate the stored table of runs
    python bench/early_warning.py --collect --workers 2   make the table anew (hours on two cores)

Runs of several recipes, objectives, staleness levels, learning rates and seeds; the table holds
every statistic of every step. The runs are those of the figures (`m2po-lab toy figure` and `sweep`
with the same --out find them) and more at higher learning rates. Everything is judged on runs that
the rule has not seen: held-out seeds of known settings, held-out objectives, held-out recipes.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from toy_envs import warning
from toy_envs.journal import read_metrics
from toy_envs.parallel import run_all
from toy_envs.recipes import ARMS, SWEEPS, Arm, Run
from toy_envs.study import Study

TABLE = Path(__file__).with_name("early_warning.parquet")
METRICS = tuple(warning.LEVELS)
ALL = tuple(f"{name}{kind}" for name in METRICS for kind in ("", ".slope", ".jump"))
RULES = {
    "m2 and its slope": ("m2", "m2.slope"),
    "ess and gradient norm": ("ess_fraction", "gradient_norm", "gradient_norm.jump"),
    "reward alone": ("reward", "reward.slope", "reward.jump"),
    "everything but reward": (*(name for name in ALL if not name.startswith("reward")), "lags"),
    "everything": (*ALL, "lags"),
}
"""Combinations that are fitted; single statistics need no fit."""
FALSE_RATE = 0.1
SHOWN = 16
BITS = 8
HELD_OUT = ("seed", "objective", "recipe")
DRAWN = ("m2", "m2_all", "ess_fraction", "gradient_norm", "reward.jump", *RULES)

FALLING = ("is", "cispo", "m2po_areal", "m2po", "sapo", "tis")
SWEPT = tuple(arm for arms in SWEEPS.values() for arm in arms)


def at(names: tuple[str, ...], staleness: int = 256, **settings: Any) -> tuple[Arm, ...]:
    """Arms of several objectives."""
    return tuple(Arm(objective=name, staleness=staleness, **settings) for name in names)


GRID = (
    Study("figure", "bandit", (*ARMS, *SWEPT), (20, 21, 22)),
    Study("figure", "bandit", at((*FALLING, "minirl")), (21, 22)),
    *(Study("faster", "bandit", at(FALLING, rate=rate), (20, 21, 22)) for rate in (1.5, 2.0)),
    Study("faster", "bandit", at(FALLING, rate=3.0), (20, 21)),
    Study("fresher", "bandit", at(FALLING, 128, rate=2.0), (20, 21)),
    Study("fresher", "bandit", at(FALLING, 128, rate=3.0), (20, 21)),
    Study("fresher", "bandit", at(FALLING, 64, rate=3.0), (20, 21)),
    Study("figure", "running-sum", ARMS, (0, 1, 2, 30, 31, 32)),
    Study("figure", "running-sum", at(("is",)), (33, 34, 35)),
    Study("others", "running-sum", at(("tis", "cispo", "gspo")), (30,)),
    Study("others", "running-sum", at(("ppo", "m2po"), 128), (30,)),
    Study("horizon", "running-sum", at(("is", "m2po"), steps=280), (30,)),
    Study("faster", "running-sum", at(("is", "m2po"), rate=1.5), (30,)),
)
"""What is run: the figures, and learning rates at which most of what is not clipped falls."""


def plans(folder: Path) -> dict[Path, tuple[Arm, Run]]:
    """Every run of the table: its directory, its arm, its settings."""
    return {
        plan.place(folder / plan.recipe, arm, seed): (arm, arm.run(plan.recipe, seed))
        for plan in GRID
        for arm in plan.arms
        for seed in plan.seeds
    }


def collect(todo: dict[Path, tuple[Arm, Run]], folder: Path, workers: int) -> None:
    """Run everything that is missing."""
    bar = lambda done, total: print(f"\r{done}/{total} steps", end="", file=sys.stderr)  # noqa: E731
    for recipe in dict.fromkeys(run.recipe for _, run in todo.values()):
        runs = {place: run for place, (_, run) in todo.items() if run.recipe == recipe}
        run_all(runs, folder / recipe / "warm", workers=workers, progress=bar)


def write_table(todo: dict[Path, tuple[Arm, Run]]) -> None:
    """Write the statistics of every step of every run."""
    columns: dict[str, list[Any]] = {}
    for place, (arm, run) in todo.items():
        for entry in read_metrics(place):
            row = {
                **{"run": place.name, "recipe": run.recipe, "objective": run.objective},
                **{"staleness": run.staleness, "rate": arm.rate, "seed": run.seed},
                **{metric: entry[metric] for metric in ("step", *METRICS)},
            }
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
    small = {
        key: pa.array(coarse(values) if key in METRICS else values)
        for key, values in columns.items()
    }
    pq.write_table(
        pa.table(small),
        TABLE,
        compression="zstd",
        compression_level=19,
        use_dictionary=[key for key in small if key not in METRICS],
        use_byte_stream_split=list(METRICS),
    )


def coarse(values: list[float]) -> np.ndarray:
    """Round to BITS significant bits, as float32: the rest would be most of the file."""
    part, power = np.frexp(np.array(values, np.float64))
    return np.ldexp(np.round(part * 2**BITS), power - BITS).astype(np.float32)


class Runs:
    """The table, run by run."""

    def __init__(self, table: pa.Table) -> None:
        """Label every step and compute its features."""
        frame = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        starts = np.flatnonzero(np.diff(frame["step"], prepend=1) < 0)
        self.settings: list[dict[str, Any]] = []
        self.features, self.labels, self.onsets = [], [], []
        for start, stop in zip(starts, [*starts[1:], len(table)], strict=True):
            rows = slice(start, stop)
            keys = ("recipe", "objective", "staleness", "seed")
            self.settings.append({key: frame[key][start] for key in keys})
            metrics = {key: frame[key][rows].astype(np.float64) for key in METRICS}
            fall = warning.onset(metrics["reward"])
            self.onsets.append(fall)
            self.labels.append(warning.labels(fall, stop - start))
            self.features.append(warning.features(metrics, int(frame["staleness"][start])))

    def matrix(self, i: int, names: tuple[str, ...]) -> np.ndarray:
        """Features (steps, F) of one run."""
        return np.stack([self.features[i][name] for name in names], axis=1)

    def folds(self, key: str) -> dict[Any, tuple[list[int], list[int]]]:
        """Hold every value of a setting out in turn: value -> runs to fit on, runs to judge."""
        every = range(len(self.settings))
        of = [setting[key] for setting in self.settings]
        return {
            out: ([i for i in every if of[i] != out], [i for i in every if of[i] == out])
            for out in dict.fromkeys(of)
        }


def rule(runs: Runs, names: tuple[str, ...], fit_on: list[int]) -> Callable[[int], np.ndarray]:
    """Scores of a run, by its number; several statistics are combined on the runs to fit on."""
    if len(names) == 1:
        return lambda i: runs.features[i][names[0]]
    columns = np.concatenate([runs.matrix(i, names) for i in fit_on])
    fitted = warning.fit(columns, np.concatenate([runs.labels[i] for i in fit_on]))
    return lambda i: fitted.score(runs.matrix(i, names))


def judged(runs: Runs, names: tuple[str, ...], folds: list[tuple[list[int], list[int]]]) -> dict:
    """Fit and set the threshold on one part of each fold, judge the other, pool the judgements."""
    scores: dict[int, np.ndarray] = {}
    counts, leads = np.zeros(4, int), []
    for fit_on, judge in folds:
        score_of = rule(runs, names, fit_on)
        threshold = warning.threshold_for(
            [score_of(i) for i in fit_on], [runs.onsets[i] for i in fit_on], FALSE_RATE
        )
        scores |= {i: score_of(i) for i in judge}
        onsets = [runs.onsets[i] for i in judge]
        found = warning.alarms([scores[i] for i in judge], onsets, threshold)
        counts += [found.warned, found.collapsed, found.false, found.stable]
        leads.extend(found.leads)
    score = np.concatenate(list(scores.values()))
    label = np.concatenate([runs.labels[i] for i in scores])
    run = np.concatenate([np.full(len(runs.labels[i]), i) for i in scores])
    low, high = warning.auc_interval(score, label, run, np.random.default_rng(0))
    warned, collapsed, false, stable = counts.tolist()
    return {
        "auc": warning.auc(score, label),
        "auc_interval": [low, high],
        "warned": [warned, collapsed, *warning.share_interval(warned, collapsed)],
        "false_alarms": [false, stable, *warning.share_interval(false, stable)],
        "lead_updates": np.quantile(leads, [0.25, 0.5, 0.75]).tolist() if leads else None,
        "roc": warning.roc(score, label),
    }


def evaluate(runs: Runs) -> dict[str, Any]:
    """Judge every single statistic and every rule, for each way of holding runs out."""
    scores = {**{name: (name,) for name in runs.features[0]}, **RULES}
    report: dict[str, Any] = {"counts": counts(runs)}
    ways = {f"held-out {key}s": list(runs.folds(key).values()) for key in HELD_OUT}
    ways |= {f"held-out recipe {name}": [fold] for name, fold in runs.folds("recipe").items()}
    for way, folds in ways.items():
        if any(runs.onsets[i] is not None for _, judge in folds for i in judge):
            found = {name: judged(runs, names, folds) for name, names in scores.items()}
            report[way] = dict(sorted(found.items(), key=lambda item: -item[1]["auc"]))
    return report


def counts(runs: Runs) -> dict[str, list[int]]:
    """Recipe -> runs, and how many of them collapse."""
    found: dict[str, list[int]] = {}
    for setting, fall in zip(runs.settings, runs.onsets, strict=True):
        for key in (setting["recipe"], "all"):
            pair = found.setdefault(key, [0, 0])
            pair[0] += 1
            pair[1] += fall is not None
    return found


def show(report: dict[str, Any]) -> None:
    """Print a table a way of holding out, of the largest areas."""
    for recipe, (runs, collapse) in report["counts"].items():
        print(f"{recipe}: {runs} runs, {collapse} collapse")
    for way, found in report.items():
        if way == "counts":
            continue
        print(f"\n{way} (threshold: {FALSE_RATE:.0%} false alarms on the runs fitted on)")
        print(f"{'score':28} AUC  95 %         warned         false alarms         lead")
        for name, row in list(found.items())[:SHOWN]:
            low, high = row["auc_interval"]
            hits, of, *_ = row["warned"]
            wrong, stable, w_low, w_high = row["false_alarms"]
            lead = "" if row["lead_updates"] is None else f"{row['lead_updates'][1]:.0f}"
            print(
                f"{name:28} {row['auc']:.2f} {low:.2f}-{high:.2f}  {hits:3}/{of:<3}"
                f"  {wrong:3}/{stable:<3} ({w_low:.2f}-{w_high:.2f})  {lead}"
            )


def draw(report: dict[str, Any], place: Path) -> None:
    """ROC of some scores, one plot a way of holding out."""
    ways = [way for way in report if way.endswith("s") and way != "counts"]
    figure = Figure(figsize=(4.4 * len(ways), 4.4), layout="constrained")
    for axes, way in zip(figure.subplots(1, len(ways)), ways, strict=True):
        for name in DRAWN:
            row = report[way][name]
            low, high = row["auc_interval"]
            label = f"{name}: {row['auc']:.2f} ({low:.2f}-{high:.2f})"
            axes.plot(*row["roc"], label=label, linewidth=1.4)
        axes.plot([0, 1], [0, 1], color="#68707a", linewidth=0.8, linestyle=":")
        axes.set(title=way, xlabel="calm steps above", ylabel="steps before a collapse above")
        axes.legend(fontsize=7, title="area (95 %)", title_fontsize=7, loc="lower right")
    figure.savefig(place, dpi=110)


def main() -> None:
    """Collect if asked to, then evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collect", action="store_true", help="run what is missing first")
    parser.add_argument("--folder", type=Path, default=Path("build/toy"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--figure", type=Path, help="draw the ROC here")
    chosen = parser.parse_args()
    if chosen.collect:
        todo = plans(chosen.folder)
        collect(todo, chosen.folder, chosen.workers)
        write_table(todo)
    if not TABLE.exists():
        sys.exit(f"{TABLE.name} is not there; make it with --collect")
    report = evaluate(Runs(pq.read_table(TABLE)))
    show(report)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2))
    if chosen.figure:
        draw(report, chosen.figure)


if __name__ == "__main__":
    main()
