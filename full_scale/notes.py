"""What to know about a recipe before it runs, as the comment above its command."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from full_scale.evaluation.paper import PAPER, SOURCE, Arm
from full_scale.plan import summary
from full_scale.recipes import Recipe

COLLAPSE: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "llama3.2-3b-instruct": (800, 1000),
        "qwen2.5-math-7b": (1600, 1700),
        "qwen2.5-32b": (1200, 1400),
    }
)
"""Updates after which the paper saw accuracy collapse without a trust region, 256 updates stale."""
CLIPPED: Mapping[tuple[str, str, int], float] = MappingProxyType(
    {
        ("qwen3-1.7b", "grpo", 256): 0.66,
        ("qwen3-1.7b", "grpo", 0): 0.07,
        ("qwen3-1.7b", "m2po", 256): 0.02,
        ("qwen2.5-32b", "grpo", 256): 1.22,
        ("qwen2.5-32b", "grpo", 0): 0.05,
        ("qwen2.5-32b", "m2po", 256): 0.06,
    }
)
"""Tokens without a gradient in the paper's runs, percent, by model, method and staleness."""


def notes(recipe: Recipe) -> list[str]:
    """Paragraphs: what runs, how long, what the paper got, what to watch."""
    method = recipe.trust_region
    return [
        f"{recipe.summary}.",
        f"{method.label}: {method.summary}.",
        summary(recipe),
        _expected(recipe),
        "Watch: " + "; ".join(_watch(recipe)) + ".",
    ]


def _expected(recipe: Recipe) -> str:
    published = PAPER.get(Arm(recipe.model, recipe.method, recipe.staleness))
    swept = recipe.name != f"{recipe.model}-{recipe.method}-s{recipe.staleness}"
    if recipe.method == "none" and recipe.model in COLLAPSE:
        low, high = COLLAPSE[recipe.model]
        updates = recipe.updates_per_step
        return (
            f"Expected: collapse after {low} to {high} updates, steps {low // updates} to "
            f"{high // updates} (arXiv 2510.01161)."
        )
    if published is None or swept:
        return "Expected: the paper gives no number for this run."
    return (
        f"Expected: {published.average} % on average over eight sets at the best checkpoint "
        f"({SOURCE})."
    )


def _watch(recipe: Recipe) -> Iterator[str]:
    if recipe.staleness:
        yield (
            f"no step comes before {recipe.staleness_steps} batches were sampled; "
            f"training/stale_k rises to {recipe.staleness_steps} and stays there"
        )
    rate = CLIPPED.get((recipe.model, recipe.method, recipe.staleness))
    paper = "" if rate is None else f", {rate} % in the paper"
    if recipe.method == "m2po":
        yield f"actor/m2po/m2_after at most {recipe.budget:g}; masked_fraction small{paper}"
    elif recipe.method == "none":
        yield "actor/m2po/m2_before growing, then critic/score/mean falling"
    else:
        yield f"actor/m2po/masked_fraction, which is the clipped share here{paper}"
    yield "critic/score/mean above .1 and rising"
