"""Which statistics foresee a collapse, how early, and how often they cry wolf.

    python bench/early_warning.py                                 evaluate the stored table of runs
    python bench/early_warning.py --collect --workers 2           make the table (under an hour)

Runs of several environments, objectives, staleness levels, learning rates and seeds; the table
holds every statistic of every step. Everything is judged twice on runs that the rule has not seen:
held-out seeds of known settings, and held-out settings (all runs of one objective, or of the other
environment).
"""

import argparse
import json
import multiprocessing
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from toy_envs import warning
from toy_envs.recipes import Run
from toy_envs.train import train

TABLE = Path(__file__).with_name("early_warning.parquet")
METRICS = tuple(warning.LEVELS)
ALL = tuple(f"{name}{kind}" for name in METRICS for kind in ("", ".slope", ".jump"))
RULES = {
    "m2": ("m2",),
    "m2 and its slope": ("m2", "m2.slope"),
    "ess and gradient norm": ("ess_fraction", "gradient_norm", "gradient_norm.jump"),
    "reward alone": ("reward", "reward.slope", "reward.jump"),
    "everything but reward": (*(name for name in ALL if not name.startswith("reward")), "lags"),
    "everything": (*ALL, "lags"),
}
"""Combinations that are fitted; single statistics need no fit."""
FALSE_RATE = 0.1


def plans() -> dict[str, Run]:
    """Every run of the table, by name."""
    bandit = [
        Run(recipe="bandit", objective=o, staleness=s, learning_rate=lr, seed=seed, steps=220)
        for o in ("is", "m2po", "m2po_areal", "ppo", "gspo", "cispo")
        for s in (64, 128, 256)
        for lr in (0.06, 0.09)
        for seed in range(100, 103)
    ]
    transformer = [
        Run(recipe="running-sum", objective=o, staleness=s, learning_rate=lr, seed=seed)
        for o in ("is", "m2po", "ppo", "gspo")
        for s, lr in ((256, 2e-4), (256, 3e-4), (128, 3e-4))
        for seed in range(100, 103)
    ]
    return {
        f"{r.recipe}_{r.objective}_s{r.staleness}_lr{r.learning_rate:g}_seed{r.seed}": r
        for r in (*bandit, *transformer)
    }


def collect_one(name: str, run: Run, folder: Path) -> str:
    """Run once and keep its metrics only."""
    kept = folder / f"{name}.json"
    if not kept.exists():
        scratch = folder / "scratch" / name
        metrics = train(run, scratch, cache=folder / "warm", checkpoint_every=10_000)
        kept.write_text(json.dumps(metrics))
        shutil.rmtree(scratch)
    return name


def collect(folder: Path, workers: int) -> None:
    """Run everything that is missing and write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = plans()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        jobs = [pool.submit(collect_one, name, run, folder) for name, run in todo.items()]
        for i, job in enumerate(jobs):
            print(f"{i + 1}/{len(jobs)} {job.result()}", file=sys.stderr, flush=True)
    columns: dict[str, list[Any]] = {}
    for name, run in todo.items():
        for entry in json.loads((folder / f"{name}.json").read_text()):
            row = {
                **{"run": name, "recipe": run.recipe, "objective": run.objective},
                **{"staleness": run.staleness, "learning_rate": run.learning_rate},
                **{"seed": run.seed, "step": entry["step"]},
                **{metric: entry[metric] for metric in METRICS},
            }
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
    small = {
        key: pa.array(values, pa.float32() if key in METRICS else None)
        for key, values in columns.items()
    }
    pq.write_table(pa.table(small), TABLE, compression="zstd")


class Runs:
    """The table, run by run."""

    def __init__(self, table: pa.Table) -> None:
        """Label every step and compute its features."""
        frame = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        self.names = list(dict.fromkeys(frame["run"].tolist()))
        self.settings: list[dict[str, Any]] = []
        self.features, self.labels, self.onsets = [], [], []
        for name in self.names:
            rows = np.flatnonzero(frame["run"] == name)
            first = {key: frame[key][rows[0]] for key in ("recipe", "objective", "seed")}
            self.settings.append(first)
            metrics = {key: frame[key][rows].astype(np.float64) for key in METRICS}
            start = warning.onset(metrics["reward"])
            self.onsets.append(start)
            self.labels.append(warning.labels(start, len(rows)))
            staleness = int(frame["staleness"][rows[0]])
            self.features.append(warning.features(metrics, staleness))

    def matrix(self, i: int, names: tuple[str, ...]) -> np.ndarray:
        """Features (steps, F) of one run."""
        return np.stack([self.features[i][name] for name in names], axis=1)

    def splits(self) -> dict[str, list[tuple[list[int], list[int]]]]:
        """Ways to hold runs out: (train, test) indices."""
        every = range(len(self.names))
        groups = {
            "held-out seeds": [s["seed"] for s in self.settings],
            "held-out objectives": [s["objective"] for s in self.settings],
            "held-out environment": [s["recipe"] for s in self.settings],
        }
        return {
            how: [
                ([i for i in every if of[i] != out], [i for i in every if of[i] == out])
                for out in dict.fromkeys(of)
            ]
            for how, of in groups.items()
            if len(set(of)) > 1
        }


def judged(runs: Runs, names: tuple[str, ...], folds: list[tuple[list[int], list[int]]]) -> dict:
    """Fit on the training runs of each fold, judge on its test runs, pool the judgements."""
    scores: dict[int, np.ndarray] = {}
    total = np.zeros(4, int)
    leads: list[float] = []
    for train_runs, test_runs in folds:
        if len(names) == 1:
            score_of = lambda i: runs.features[i][names[0]]  # noqa: E731
        else:
            x = np.concatenate([runs.matrix(i, names) for i in train_runs])
            y = np.concatenate([runs.labels[i] for i in train_runs])
            rule = warning.fit(x, y)
            score_of = lambda i, rule=rule: rule.score(runs.matrix(i, names))  # noqa: E731
        threshold = warning.threshold_for(
            [score_of(i) for i in train_runs], [runs.onsets[i] for i in train_runs], FALSE_RATE
        )
        found = warning.alarms(
            [score_of(i) for i in test_runs], [runs.onsets[i] for i in test_runs], threshold
        )
        total += [found.warned, found.collapsed, found.false, found.stable]
        leads.extend([found.lead] * found.warned)
        # Scores of different folds are put on one scale by the threshold of each.
        scores |= {i: score_of(i) - (threshold if np.isfinite(threshold) else 0) for i in test_runs}
    order = sorted(scores)
    score = np.concatenate([scores[i] for i in order])
    label = np.concatenate([runs.labels[i] for i in order])
    run = np.concatenate([np.full(len(runs.labels[i]), i) for i in order])
    low, high = warning.auc_interval(score, label, run, np.random.default_rng(0))
    return {
        "auc": warning.auc(score, label),
        "auc_interval": [low, high],
        "warned": [int(total[0]), int(total[1]), *warning.share_interval(total[0], total[1])],
        "false_alarms": [int(total[2]), int(total[3]), *warning.share_interval(total[2], total[3])],
        "lead_updates": float(np.median(leads)) if leads else None,
    }


def evaluate(runs: Runs) -> dict[str, Any]:
    """Judge every single statistic and every rule, for each way of holding runs out."""
    singles = {name: (name,) for name in runs.features[0]}
    report: dict[str, Any] = {
        "runs": len(runs.names),
        "collapsed": sum(start is not None for start in runs.onsets),
    }
    for how, folds in runs.splits().items():
        found = {name: judged(runs, names, folds) for name, names in {**singles, **RULES}.items()}
        report[how] = dict(sorted(found.items(), key=lambda item: -item[1]["auc"]))
    return report


def show(report: dict[str, Any]) -> None:
    """Print a table a way of holding out."""
    print(f"{report['runs']} runs, {report['collapsed']} collapse")
    for how, found in report.items():
        if not isinstance(found, dict):
            continue
        print(f"\n{how} (threshold: {FALSE_RATE:.0%} false alarms on the training runs)")
        print(f"{'score':28} AUC  95 %         warned         false alarms   lead (updates)")
        for name, row in found.items():
            low, high = row["auc_interval"]
            hits, of, *_ = row["warned"]
            wrong, stable, w_low, w_high = row["false_alarms"]
            print(
                f"{name:28} {row['auc']:.2f} {low:.2f}-{high:.2f}  {hits:3}/{of:<3}"
                f"  {wrong:3}/{stable:<3} ({w_low:.2f}-{w_high:.2f})  {row['lead_updates']}"
            )


def main() -> None:
    """Collect if asked to, then evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collect", action="store_true", help="run what is missing first")
    parser.add_argument("--folder", type=Path, default=Path("build/early_warning"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the numbers here")
    chosen = parser.parse_args()
    if chosen.collect:
        collect(chosen.folder, chosen.workers)
    if not TABLE.exists():
        print(f"{TABLE.name} is not there; make it with --collect")
        return
    report = evaluate(Runs(pq.read_table(TABLE)))
    show(report)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
