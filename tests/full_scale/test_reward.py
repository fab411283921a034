"""The reward as verl calls it: its reward loop, its batch manager, from its threads."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_module
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.workers.reward_manager import get_reward_manager_cls

from full_scale.reward import Judges, compute_score, compute_scores

TABLE = tomllib.loads((Path(__file__).parents[1] / "data/reward_answers.toml").read_text())
MISJUDGED = TABLE.pop("misjudged")
RESPONSES = [r"so \boxed{\frac{1}{2}}", r"\boxed{8}", "7", "", r"\boxed{9^{9^{9}}}"]
TRUTHS = ["0.5", "7", "7", "7", "7"]


def settings(model, *more):
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            [
                f"actor_rollout_ref.model.path={model}",
                "reward.custom_reward_function.path=pkg://full_scale.reward",
                *more,
            ],
        )


def rows(model):
    """Responses in verl's rows, padded at the end."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    ids = [tokenizer(text, add_special_tokens=False).input_ids for text in RESPONSES]
    width = max(map(len, ids))
    responses = torch.tensor([each + [0] * (width - len(each)) for each in ids])
    mask = torch.tensor([[1] * (1 + len(each)) + [0] * (width - len(each)) for each in ids])
    batch = {
        "prompts": torch.ones(len(ids), 1, dtype=torch.int64),
        "responses": responses,
        "attention_mask": mask,
    }
    meta = {
        "data_source": ["x"] * len(ids),
        "reward_model": [{"style": "rule", "ground_truth": truth} for truth in TRUTHS],
        "extra_info": [{} for _ in ids],
    }
    return DataProto(
        batch=TensorDict(batch, batch_size=len(ids)),
        non_tensor_batch={name: np.array(values, dtype=object) for name, values in meta.items()},
    )


@pytest.mark.parametrize(("required", "bare"), [("true", 0.0), ("false", 1.0)])
def test_verls_reward_loop_scores_a_batch_from_its_threads(model, required, bare):
    key = f"+reward.custom_reward_function.reward_kwargs.box_required={required}"
    worker = RewardLoopWorker(settings(model, key))
    results = worker.loop.run_until_complete(worker.compute_score_batch(rows(model)))
    assert [each["reward_score"] for each in results] == [1.0, 0.1, bare, 0.0, 0.1]
    extra = [each["reward_extra_info"] for each in results]
    assert [each["acc"] for each in extra] == [1, 0, bare, 0, 0]
    assert [each["cut_off"] for each in extra] == [0, 0, 0, 0, 1]


def test_verls_batch_manager_takes_the_batch_interface(model):
    manager = get_reward_manager_cls("batch")(
        AutoTokenizer.from_pretrained(model), num_examine=0, compute_score=compute_scores
    )
    rewards = manager(rows(model), return_dict=True)
    assert rewards["reward_tensor"].sum(dim=1).tolist() == pytest.approx([1.0, 0.1, 0, 0, 0.1])
    assert list(rewards["reward_extra_info"]["acc"]) == [1, 0, 0, 0, 0]


def test_one_answer_and_a_batch_give_the_same_scores():
    batch = compute_scores(["x"] * 5, RESPONSES, TRUTHS)
    one = [compute_score("x", *pair) for pair in zip(RESPONSES, TRUTHS, strict=True)]
    assert batch == one


def test_verls_environment_gives_every_pair_of_the_table_its_verdict():
    pairs = [
        (kind, truth, answer, verdict == "right")
        for kind, verdicts in TABLE.items()
        for verdict, listed in verdicts.items()
        for truth, answer in listed
    ]
    pairs += [
        ("misjudged", truth, answer, verdict == "wrong")
        for verdict, listed in MISJUDGED.items()
        for truth, answer in listed
    ]
    with Judges(2, cpu_seconds=60, seconds=300) as judges:
        scores = compute_scores(
            [""] * len(pairs),
            [rf"\boxed{{{answer}}}" for _, _, answer, _ in pairs],
            [truth for _, truth, _, _ in pairs],
            judges=judges,
        )
    given = [(*pair[:3], score["acc"] == 1) for pair, score in zip(pairs, scores, strict=True)]
    assert given == pairs
