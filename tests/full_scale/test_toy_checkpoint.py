"""The toy's checkpoint as transformers loads it: the same logits, tokens and greedy answers."""

import warnings

import numpy as np
import pytest
import torch
import transformers

from toy_envs.export import export
from toy_envs.fraction_sums import FractionSums
from toy_envs.small_lm import SmallLM, SmallLMConfig
from toy_envs.tasks import Forks, RunningSum

TASKS = (RunningSum(), Forks(), FractionSums())
TEXTS = {"running-sum": "47315=", "forks": "4731=", "fractions": "1/3+2/5="}


@pytest.fixture(params=TASKS, ids=lambda task: task.name)
def exported(request, tmp_path):
    """A task, a model with random weights, and both as transformers reads them back."""
    task = request.param
    torch.manual_seed(0)
    context = task.prompt_length + task.answer_length
    model = SmallLM(SmallLMConfig(len(task.vocabulary), context, width=32, heads=2))
    export(model, task, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that transformers imports
        loaded = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path, attn_implementation="sdpa"
        ).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    return task, model, loaded, tokenizer


def test_transformers_gives_the_same_logits(exported):
    task, model, loaded, _ = exported
    ids = torch.from_numpy(task.demonstrations(np.random.default_rng(0), prompts(task)))
    with torch.no_grad():
        ours, theirs = model(ids)[0], loaded(ids).logits
    assert ours.numpy() == pytest.approx(theirs.numpy(), abs=2e-6)


def test_the_tokenizer_reads_and_writes_the_tokens_of_the_task(exported):
    task, _, _, tokenizer = exported
    for row in prompts(task)[:8].tolist():
        text = "".join(task.vocabulary[token] for token in row)
        assert tokenizer(text)["input_ids"] == row
        assert tokenizer.decode(row) == text
    assert len(tokenizer(TEXTS[task.name])["input_ids"]) == task.prompt_length
    assert tokenizer.eos_token_id == tokenizer.pad_token_id == task.end


def test_generate_continues_as_the_greedy_toy_model(exported):
    task, model, loaded, _ = exported
    ids = torch.from_numpy(prompts(task)[:8])
    given = loaded.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=task.answer_length,
        do_sample=False,
        eos_token_id=None,
    )[:, ids.shape[1] :]
    seen = ids
    for _ in range(task.answer_length):
        with torch.no_grad():
            seen = torch.cat([seen, model(seen)[0][:, -1:].argmax(-1)], dim=1)
    assert torch.equal(given, seen[:, ids.shape[1] :])


def prompts(task):
    return task.prompts(np.random.default_rng(1), 16)
