"""Rules about what the run learns from: signal, entropy, groups."""

import math
from collections.abc import Iterator

import numpy as np

from m2po_lab.findings import metrics
from m2po_lab.findings.finding import Hit
from m2po_lab.findings.view import Cell, View, cell, rank_correlation
from m2po_lab.logs.rows import UNKNOWN

SURPRISE_TOKENS = 200
"""Tokens a step needs where -log-prob of the samples stands in for entropy: it is noisier."""


def _entropies(view: View) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """(what, its mean by step), the best source first: tokens, the trainer's metric, samples."""
    least = view.limits["entropy_tokens"]
    steps = view.steps
    yield "entropy", [(s, x.entropy[1] / x.entropy[0]) for s, x in steps if x.entropy[0] >= least]
    for series in metrics.entropies(view.metrics):
        yield series.name, metrics.points(series)
    surprise = [(s, x.surprise) for s, x in steps if x.surprise[0] >= SURPRISE_TOKENS]
    yield "mean of -log-prob", [(s, total / n) for s, (n, total) in surprise]


def entropy_collapse(view: View) -> Iterator[Hit]:
    """Entropy by step, from the first source that has steps enough."""
    for what, series in _entropies(view):
        if len(series) < view.limits["sync_steps"]:
            continue
        values = [float(value) for _, value in series]
        first = float(np.mean(values[: max(len(values) // 8, 1)]))
        last = float(np.mean(values[-max(len(values) // 4, 1) :]))
        if _has_fallen(view, values, first, last):
            yield Hit(
                f"The {what} falls from {first:.2g} to {last:.2g} nats over steps {series[0][0]} "
                f"to {series[-1][0]}; M2 and ESS look better on the way.",
                {
                    "ratio": None,
                    "measure": what,
                    "first": first,
                    "last": last,
                    "by_step": [{"step": s, "nats": float(v)} for s, v in series][:50],
                },
            )
        return


STAYS_STEPS = 8
"""Steps from which a fall at the start, with nothing but noise after it, is told from noise."""


def _has_fallen(view: View, values: list[float], first: float, last: float) -> bool:
    """Down to a small part of what there was: step by step, or early and for good."""
    limits = view.limits
    small = limits["entropy_fraction"] * first
    if first < limits["entropy_start"] or last > min(limits["entropy_nats"], small):
        return False
    stays = len(values) >= STAYS_STEPS and max(values[len(values) // 2 :]) <= small
    return stays or rank_correlation(values) <= -limits["trend_rank"]


def no_learning_signal(view: View) -> Iterator[Hit]:
    """Steps in which every known advantage is 0; by the trainer's metrics where none is logged."""
    known = {s: step for s, step in view.evidence.steps.items() if step.advantages > 0}
    if not known:
        yield from _no_signal_by_metrics(view)
        return
    dead = sorted(s for s, step in known.items() if step.signal == 0)
    if not dead:
        return
    share = len(dead) / len(known)
    tokens = sum(known[s].tokens for s in dead)
    rows = sum(step.rows for step in known.values())
    many = share > view.limits["no_signal_steps"] and rows >= view.limits["signal_rows"]
    yield Hit(
        f"Every advantage is 0 {_where(len(dead), len(known))} ({tokens} tokens): no quadrant, no "
        "active token, no gradient.",
        {
            "ratio": None,
            "steps": [s for s in dead if s != UNKNOWN][:50],
            "dead_steps": len(dead),
            "known_steps": len(known),
            "tokens": tokens,
        },
        severity=None if many else "info",
    )


def _where(dead: int, known: int) -> str:
    return "everywhere" if dead == known else f"in {dead} of {known} steps"


def _no_signal_by_metrics(view: View) -> Iterator[Hit]:
    found = metrics.dead_steps(view.metrics)
    if found is None or not any(found.dead.values()):
        return
    dead = sorted(step for step, is_dead in found.dead.items() if is_dead)
    share, known = len(dead) / len(found.dead), len(found.dead)
    many = share > view.limits["no_signal_steps"] and known >= view.limits["sync_steps"]
    yield Hit(
        f"By the trainer's {found.name} every advantage is 0 {_where(len(dead), known)}: no "
        "gradient.",
        {
            "ratio": None,
            "metric": found.name,
            "steps": dead[:50],
            "dead_steps": len(dead),
            "known_steps": known,
        },
        severity=None if many else "info",
    )


def moving_without_signal(view: View) -> Iterator[Hit]:
    """Drift over updates that had no advantage to follow."""
    for ratio in view.pairs:
        if ratio == "proximal/behavior" and "current/behavior" in view.pairs:
            continue
        if not view.knows_lag:
            yield from _moving_by_step(view, ratio)
        moved = _without_signal(view, ratio)
        if moved is None:
            continue
        steps, found = moved
        floor = view.pool(ratio, lambda step, trained, lag: lag == 0)
        known_floor = ratio != "current/proximal" and floor.n > 0
        base = max(floor.m2, view.limits["moving_m2"]) if known_floor else view.limits["moving_m2"]
        low = found.low if math.isfinite(found.low) else 0.0
        above_floor = low > floor.m2 if known_floor else low > view.limits["moving_m2"] / 2
        if view.enough(found) and found.m2 > base and above_floor:
            yield Hit(
                f"{ratio}: M2 is {found.m2:.2g} [{found.low:.2g}, {found.high:.2g}] over updates "
                f"in which every advantage was 0 (steps {_ranges(steps)})"
                + (f", against {floor.m2:.2g} at lag 0." if known_floor else "."),
                {
                    "ratio": ratio,
                    **found.evidence(),
                    "steps": steps[:50],
                    "floor": floor.m2 if known_floor else None,
                },
            )


def _moving_by_step(view: View, ratio: str) -> Iterator[Hit]:
    """Without lags: drift that grows over the steps that had nothing to learn from."""
    dead = [s for s, step in view.steps if step.advantages > 0 and step.signal == 0]
    if len(dead) < 3:
        return
    part = len(dead) // 3
    early = view.pool(ratio, lambda s, t, g: s in dead[:part])
    late = view.pool(ratio, lambda s, t, g: s in dead[-part:])
    limits = view.limits
    least = max(limits["drift_growth"] * early.m2, early.high, limits["moving_m2"])
    if view.enough(early) and view.enough(late) and late.low > least:
        yield Hit(
            f"{ratio}: M2 grows from {early.m2:.2g} to {late.m2:.2g} over steps in which every "
            f"advantage was 0 (steps {_ranges(dead)}).",
            {
                "ratio": ratio,
                **late.evidence(),
                "steps": dead[:50],
                "floor": early.m2,
            },
        )


def _dead_versions(view: View, ratio: str) -> set[int]:
    """Trainer versions whose step has known advantages, all of them 0."""
    cells = view.evidence.cells[ratio]
    steps = view.evidence.steps
    versions = {t for _, t, _ in cells if t != UNKNOWN}
    signal = {
        t
        for (s, t, _) in cells
        if t != UNKNOWN and (steps[s].advantages == 0 or steps[s].signal > 0)
    }
    return versions - signal


def _without_signal(view: View, ratio: str) -> tuple[list[int], Cell] | None:
    """Tokens moved only by updates that had no signal, and their steps.

    For current/proximal that is the step itself; else every trainer version from the one that
    sampled the token up to the one before it is trained on, as far as the log shows them.
    """
    cells, dead = view.evidence.cells[ratio], _dead_versions(view, ratio)
    versions = {t for _, t, _ in cells if t != UNKNOWN}
    chosen = {}
    for (step, trained, lag), sums in cells.items():
        if trained == UNKNOWN or lag == UNKNOWN:
            continue
        between = {t for t in versions if trained - lag <= t < trained}
        if ratio == "current/proximal":
            between = {trained}
        if between and between <= dead:
            chosen[step, trained, lag] = sums
    if not chosen:
        return None
    return sorted({s for s, _, _ in chosen}), cell(np.sum(list(chosen.values()), axis=0))


def _ranges(steps: list[int]) -> str:
    """1, 2, 3, 7 -> "1-3, 7"."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and step == parts[-1][-1] + 1:
            parts[-1].append(step)
        else:
            parts.append([step])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts[:8])


def groups_broken(view: View) -> Iterator[Hit]:
    """Sizes and prompts of groups."""
    groups = view.evidence.groups
    if groups is None or groups.rows < view.limits["group_rows"]:
        return
    table = groups.table.values()
    single = sum(len(group.members) == 1 for group in table)
    mixed = sorted(group.name for group in table if group.mixed)
    numbers = {"ratio": None, "groups": len(table), "rows": groups.rows}
    if single == len(table):
        yield Hit(
            f"All {len(table)} groups have a single row: the group ids are unique.",
            {**numbers, "single": single},
        )
    if mixed:
        yield Hit(
            f"{len(mixed)} of {len(table)} groups hold more than one prompt, for example "
            f"{mixed[0]}.",
            {**numbers, "mixed": len(mixed), "examples": mixed[:5]},
        )


def collapse_risk(view: View) -> Iterator[Hit]:
    """Fires never: no rule passed on held-out recipes, see docs/early_warning.md."""
    return iter(())
