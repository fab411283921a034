"""Answers are sampled a set at a time; the engine here is a stand-in with vLLM's interface."""

import json
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from full_scale.data import Given, prepare
from full_scale.errors import UnusableError
from full_scale.evaluation import counted, read, scored
from full_scale.evaluation.generate import Sampling, generate

SAMPLING = Sampling(model="org/model", max_tokens=32)


class Engine:
    """Answers the sum that it is asked for, every other time."""

    made = 0

    def __init__(self, *, model, tensor_parallel_size, seed):
        Engine.made += 1
        assert (model, tensor_parallel_size, seed) == ("org/model", 1, 0)

    def chat(self, messages, params, *, use_tqdm):
        assert not use_tqdm
        for (turn,) in messages:
            assert turn["role"] == "user"
            a = int(turn["content"].split("+")[0].split()[-1])
            texts = [rf"\boxed{{{2 * a + i % 2}}}" for i in range(params.n)]
            yield SimpleNamespace(
                outputs=[
                    SimpleNamespace(text=text, finish_reason="stop", token_ids=[1, 2, 3])
                    for text in texts
                ]
            )


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = Engine, SimpleNamespace
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(Engine, "made", 0)


@pytest.fixture
def data(tmp_path):
    for name in ("aime24", "amc23"):
        rows = [{"question": f"Find {i} + {i}.", "answer": str(2 * i)} for i in range(3)]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    prepare(tmp_path / "data", ["aime24", "amc23"], Given(folders=(tmp_path,)))
    return tmp_path / "data"


def test_each_set_gets_the_papers_number_of_answers_and_they_are_scored(tmp_path, data, vllm):
    files = generate(SAMPLING, data, tmp_path / "out")
    assert [path.name for path in files] == ["aime24.jsonl", "amc23.jsonl"]
    counts = counted(scored(list(read([str(tmp_path / "out" / "*.jsonl")]))))
    by_set = {name: list(problems.values()) for name, problems in counts.items()}
    assert by_set == {
        "HuggingFaceH4/aime_2024": [(8, 16)] * 3,
        "math-ai/amc23": [(2, 4)] * 3,
    }


def test_what_is_there_is_not_sampled_again(tmp_path, data, vllm):
    generate(SAMPLING, data, tmp_path / "out", ["aime24"])
    first = (tmp_path / "out" / "aime24.jsonl").read_bytes()
    states = {}
    generate(SAMPLING, data, tmp_path / "out", progress=states.__setitem__)
    assert states == {"aime24": "done before", "amc23": "12 answers"}
    assert (tmp_path / "out" / "aime24.jsonl").read_bytes() == first
    generate(SAMPLING, data, tmp_path / "out")
    assert Engine.made == 2


def test_answers_of_other_settings_are_not_mixed_in(tmp_path, data, vllm):
    generate(SAMPLING, data, tmp_path / "out")
    with pytest.raises(UnusableError, match="holds answers with another samples, top_p; name a"):
        generate(replace(SAMPLING, samples=2, top_p=1.0), data, tmp_path / "out")


def test_without_vllm_it_says_what_to_install(tmp_path, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UnusableError, match="--model: needs vLLM to run it; pip install vllm"):
        generate(SAMPLING, data, tmp_path / "out")


def test_a_folder_without_evaluation_sets_is_refused(tmp_path, vllm):
    with pytest.raises(UnusableError, match="holds none of aime24; m2po-lab data prepare"):
        generate(SAMPLING, tmp_path, tmp_path / "out", ["aime24"])
