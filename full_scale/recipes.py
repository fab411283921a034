"""The runs of the paper as one table; commands, plans and checks are all made from it.

Batch, lengths and optimizer: arXiv 2510.01161 and the authors' scripts. verl is not needed here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from full_scale.models import MODELS, Model

__all__ = ["METHODS", "MODELS", "RECIPES", "Method", "Model", "Recipe"]


@dataclass(frozen=True)
class Method:
    """A trust region, as a loss mode of the plugin.

    Attributes:
        label: name in the paper's tables.
        loss_mode: of `full_scale.verl_plugin.MODES`.
        summary: what happens to a token, in one line.
        loss_agg_mode: how verl averages token losses.
        bypass: whether the ratio runs to the behavior policy (`bypass_mode`); without it verl
            recomputes log-probs at the start of a step, and the loss has a proximal policy too.
        objective: parameters of the objective.
    """

    label: str
    loss_mode: str
    summary: str
    loss_agg_mode: str = "token-mean"
    bypass: bool = True
    objective: Mapping[str, Any] = field(default_factory=dict)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "m2po": Method(
            label="M2PO",
            loss_mode="m2po",
            summary="trust-region tokens are masked, largest first, until their M2 is in budget",
        ),
        "grpo": Method(
            label="GRPO",
            loss_mode="lab_ppo",
            summary="tokens beyond the clip range lose their gradient; no dual clip",
            objective={"eps_low": 0.2, "eps_high": 0.2},
        ),
        "gspo": Method(
            label="GSPO",
            loss_mode="lab_gspo",
            summary="responses whose mean log-ratio leaves the clip range lose their gradient",
            loss_agg_mode="seq-mean-token-mean",
            objective={"eps_low": 3e-4, "eps_high": 4e-4},
        ),
        "none": Method(
            label="no trust region",
            loss_mode="lab_is",
            summary="every token is weighted by its ratio, however large",
        ),
        "tis": Method(
            label="GRPO with TIS",
            loss_mode="lab_tis",
            summary="clip around the start of the step, times min(proximal/behavior, 2)",
            bypass=False,
            objective={"cap": 2.0, "eps_low": 0.2, "eps_high": 0.2},
        ),
    }
)
"""Name in recipes -> trust region."""


@dataclass(frozen=True)
class Recipe:
    """One training run.

    Attributes:
        name: what `m2po-lab launch` takes.
        model: of `MODELS`.
        method: of `METHODS`.
        staleness: age of a batch when it is first trained on, in optimizer updates.
        budget: of M2PO, nats^2; None for other methods.
        nodes: machines.
        gpus_per_node: GPUs of each.
        tensor_parallel: GPUs that one vLLM engine spans.
        train_batch_size: prompts a step.
        samples: responses a prompt.
        mini_batch_size: prompts an optimizer update.
        max_prompt_length: tokens; longer prompts are left out.
        max_response_length: tokens; longer responses are cut.
        tokens_per_gpu: size of a dynamic micro-batch of the update, tokens.
        gpu_memory_utilization: share of a GPU that vLLM takes for weights and KV cache.
        offload: whether optimizer states lie in the memory of the host outside the update.
        learning_rate: of AdamW, constant.
        steps: rollout batches that are trained on.
        every: steps between evaluations and between checkpoints.
        other_shape: of the model that is run in place of the table's.
    """

    name: str
    model: str
    method: str
    staleness: int
    budget: float | None = None
    nodes: int = 1
    gpus_per_node: int = 8
    tensor_parallel: int = 1
    train_batch_size: int = 256
    samples: int = 8
    mini_batch_size: int = 64
    max_prompt_length: int = 1536
    max_response_length: int = 14848
    tokens_per_gpu: int = 30000
    gpu_memory_utilization: float = 0.6
    offload: bool = True
    learning_rate: float = 1e-6
    steps: int = 1000
    every: int = 50
    other_shape: Model | None = None

    @property
    def summary(self) -> str:
        """What is run on what, in one line."""
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        age = f"data {self.staleness} updates old" if self.staleness else "fresh data"
        hardware = f"{self.nodes} x {self.gpus_per_node} GPUs"
        return f"{self.shape.label}: {self.trust_region.label}{budget}, {age}, {hardware}"

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates on each rollout batch."""
        return self.train_batch_size // self.mini_batch_size

    @property
    def staleness_steps(self) -> int:
        """Rollout batches that wait in the queue when a step takes the oldest."""
        return self.staleness // self.updates_per_step

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.gpus_per_node

    @property
    def rows(self) -> int:
        """Responses a step."""
        return self.train_batch_size * self.samples

    @property
    def context(self) -> int:
        """Longest prompt with longest response, tokens."""
        return self.max_prompt_length + self.max_response_length

    @property
    def shape(self) -> Model:
        """Shape of the model."""
        return self.other_shape or MODELS[self.model]

    @property
    def trust_region(self) -> Method:
        """What the method does."""
        return METHODS[self.method]


BUDGET = 0.04
STALE = 256
ARMS = (
    ("grpo", 0),
    ("grpo", STALE),
    ("gspo", STALE),
    ("m2po", 0),
    ("m2po", STALE),
    ("none", STALE),
)
"""Methods and staleness that every model is trained with."""

SWEPT = "qwen2.5-math-7b"
SWEEP_STALENESS = (0, 32, 64, 128, STALE)
SWEEP_BUDGET = (0.01, 0.02, BUDGET, 0.08, 0.16)

OF_MODEL: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # The published context of this model is 4096; all others run with 16384.
        "qwen2.5-math-7b": {"max_response_length": 2560},
        "qwen2.5-32b": {"nodes": 4, "tensor_parallel": 4},
    }
)
"""What a model changes in the defaults of `Recipe`."""


def _recipe(model: str, method: str, staleness: int) -> Recipe:
    return Recipe(
        name=f"{model}-{method}-s{staleness}",
        model=model,
        method=method,
        staleness=staleness,
        budget=BUDGET if method == "m2po" else None,
        **OF_MODEL.get(model, {}),
    )


def _all() -> Iterator[Recipe]:
    for model in MODELS:
        for method, staleness in ARMS:
            yield _recipe(model, method, staleness)
    for method in ("grpo", "m2po"):
        for staleness in SWEEP_STALENESS:
            yield _recipe(SWEPT, method, staleness)
    swept = _recipe(SWEPT, "m2po", STALE)
    for budget in SWEEP_BUDGET:
        if budget != BUDGET:
            yield replace(swept, name=f"{swept.name}-budget{budget:g}", budget=budget)
    yield _recipe(SWEPT, "tis", STALE)


RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in _all()})
"""Name -> recipe."""
