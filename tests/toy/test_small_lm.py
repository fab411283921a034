"""The transformer: cache, log-probs, optimizer, checkpoint."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from m2po_lab.logs.safetensors import unpack  # noqa: E402
from toy_envs.adam import Adam  # noqa: E402
from toy_envs.export import export  # noqa: E402
from toy_envs.lm_policy import WarmStart, warm_model  # noqa: E402
from toy_envs.policy import draw  # noqa: E402
from toy_envs.small_lm import SmallLM, SmallLMConfig  # noqa: E402
from toy_envs.tasks import RunningSum  # noqa: E402

TASK = RunningSum()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return SmallLM(SmallLMConfig(width=16, heads=2))


def prompts(n, seed=0):
    return torch.from_numpy(TASK.prompts(np.random.default_rng(seed), n))


def test_the_default_model_has_103_thousand_parameters():
    assert sum(p.numel() for p in SmallLM(SmallLMConfig()).parameters()) == 102_656


def test_the_cache_changes_no_sample(model):
    ids, logps, entropies = model.sample(prompts(32), 10, np.random.default_rng(3))
    rng, seen = np.random.default_rng(3), prompts(32)
    for i in range(10):
        with torch.no_grad():
            logits, _ = model(seen)
        token, logp, entropy = draw(logits[:, -1].double().numpy(), rng)
        assert (token == ids[:, i]).all()
        assert logp == pytest.approx(logps[:, i], abs=1e-5)
        assert entropy == pytest.approx(entropies[:, i], abs=1e-5)
        seen = torch.cat([seen, torch.from_numpy(token)[:, None]], dim=1)


def test_sampled_log_probs_are_those_that_training_computes(model):
    ids, logps, entropies = model.sample(prompts(32), 10, np.random.default_rng(3))
    again, entropy = model.logp(prompts(32), torch.from_numpy(ids))
    assert logps == pytest.approx(again.detach().numpy(), abs=1e-5)
    assert entropies == pytest.approx(entropy.detach().numpy(), abs=1e-5)


def test_no_token_sees_a_later_one(model):
    full = prompts(4)
    other = full.clone()
    other[:, -1] = (other[:, -1] + 1) % 12
    with torch.no_grad():
        assert torch.equal(model(full)[0][:, :-1], model(other)[0][:, :-1])


def weights_after(**warm):
    warm = WarmStart(steps=2, batch=8, **warm)
    model = warm_model(TASK, SmallLMConfig(width=16, heads=2), warm, seed=0)
    return model.head.weight.detach().numpy()


def test_a_warm_start_that_learned_nothing_is_given_up_for_another_one():
    first = weights_after(attempts=1)
    assert (weights_after(attempts=3, least=0.0) == first).all()
    second, third = (weights_after(attempts=n, least=1.1) for n in (2, 3))
    assert not (second == first).any()
    assert not (third == second).any()
    assert (weights_after(attempts=2, least=1.1) == second).all()


@pytest.mark.parametrize(("decay", "clip"), [(0.0, 1e9), (0.01, 1e9), (0.01, 0.1)])
def test_the_flat_optimizer_is_adamw(model, decay, clip):
    # In double precision: a first step divides tiny gradients by their own size.
    torch.manual_seed(0)
    other = SmallLM(SmallLMConfig(width=16, heads=2)).double()
    model.double()
    mine = Adam(model, decay)
    theirs = torch.optim.AdamW(other.parameters(), lr=1e-2, weight_decay=decay)
    for seed in range(5):
        ids = torch.from_numpy(TASK.demonstrations(np.random.default_rng(seed), prompts(8).numpy()))
        norm = mine.step(-model.logp(prompts(8), ids)[0].mean(), 1e-2, clip)
        theirs.zero_grad()
        (-other.logp(prompts(8), ids)[0].mean()).backward()
        assert norm == pytest.approx(
            float(torch.nn.utils.clip_grad_norm_(other.parameters(), clip)), rel=1e-6
        )
        theirs.step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert p.detach().numpy() == pytest.approx(q.detach().numpy(), abs=1e-6)


def test_an_exported_checkpoint_holds_every_weight_once(model, tmp_path):
    export(model, TASK, tmp_path)
    tensors = unpack((tmp_path / "model.safetensors").read_bytes())
    assert sum(a.size for a in tensors.values()) == sum(p.numel() for p in model.parameters())
    qkv = model.blocks[1].qkv.weight.detach().numpy()
    assert (tensors["transformer.h.1.attn.c_attn.weight"] == qkv.T).all()


def test_the_tokenizer_file_lists_the_vocabulary_by_id(model, tmp_path):
    export(model, TASK, tmp_path)
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert tuple(sorted(vocabulary, key=vocabulary.get)) == TASK.vocabulary
