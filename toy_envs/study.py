"""Several arms, several seeds: run, summarise, draw."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from toy_envs import figures
from toy_envs.files import write_whole
from toy_envs.parallel import run_all
from toy_envs.recipes import Arm
from toy_envs.results import curves, details

LAG, BUDGET = 256, 0.04
"""What curves are counted in, updates; the paper's budget, nats^2."""


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        name: "figure", or a name in SWEEPS; the files are called so.
        recipe: name in RECIPES.
        arms: what is compared.
        seeds: every arm runs once with each.
    """

    name: str
    recipe: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]

    def place(self, out: Path, arm: Arm, seed: int) -> Path:
        """Directory of one run."""
        return out / "runs" / f"{self.recipe}_{arm.name}_seed{seed}"


def study(
    plan: Study,
    out: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Path, str]:
    """Run what is missing and write `<name>.json`, `<name>_details.json` and `<name>.png`.

    Args:
        plan: what is compared.
        out: directory; runs that are already there are used.
        workers: processes; None is one a core.
        progress: called with steps done and steps in all.

    Returns:
        The figure, and a table of where each arm ended, for people.
    """
    runs = {
        plan.place(out, arm, seed): arm.run(plan.recipe, seed)
        for arm in plan.arms
        for seed in plan.seeds
    }
    run_all(runs, out / "warm", workers=workers, progress=progress)
    places = {arm.name: [plan.place(out, arm, seed) for seed in plan.seeds] for arm in plan.arms}
    results = {name: curves(runs_of) for name, runs_of in places.items()}
    beside = {name: details(runs_of) for name, runs_of in places.items()}
    head = {"recipe": plan.recipe, "seeds": list(plan.seeds)}
    _write_json(out / f"{plan.name}.json", {**head, "arms": results})
    _write_json(out / f"{plan.name}_details.json", {**head, "arms": beside})
    title = f"{plan.recipe}: {_seeds(len(plan.seeds))}"
    if plan.name == "figure":
        drawn = figures.arms_figure(results, beside, title, LAG, BUDGET)
    else:
        draw = figures.SWEEP_FIGURES.get(plan.name, figures.comparison_figure)
        drawn = draw(results, beside, title, LAG)
    picture = out / f"{plan.name}.png"
    write_whole(picture, lambda stream: drawn.savefig(stream, format="png", dpi=100))
    return picture, _table(beside)


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _write_json(place: Path, data: dict[str, Any]) -> None:
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2)
    write_whole(place, lambda stream: stream.write(text))


def _table(beside: dict[str, dict[str, Any]]) -> str:
    """Peak, final accuracy and masked fraction of each arm: mean over seeds, and the range."""
    width = max(map(len, beside))
    lines = [f"{'arm':{width}}  peak   final  (range)        masked before/after update {LAG}"]
    for name, detail in beside.items():
        peak, final = (sum(detail[key]) / len(detail[key]) for key in ("peak", "final"))
        before, after = (detail[key] or [] for key in ("masked_before", "masked_after"))
        shares = "/".join(f"{sum(v) / len(v):.3f}" if v else "-" for v in (before, after))
        spread = f"({min(detail['final']):.3f}-{max(detail['final']):.3f})"
        lines.append(f"{name:{width}}  {peak:.3f}  {final:.3f}  {spread}  {shares}")
    return "\n".join(lines)
