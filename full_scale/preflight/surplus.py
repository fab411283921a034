"""How much probability a model gives to rows of its output that no token stands for.

`python -m full_scale.preflight.surplus FOLDER TOKENS` prints it as one line of JSON. It is a
process of its own, so that the memory of the weights is given back.
"""

import json
import sys

TEXT = (
    "Solve the problem step by step and put the final answer in \\boxed{}. What is 17 times 24? "
    "We have 17 times 24 = 17 times 20 + 17 times 4 = 340 + 68 = 408, so the answer is 408."
)


def surplus(folder: str, tokens: int) -> dict[str, float]:
    """Score a text and add up what lies beyond the tokenizer.

    Args:
        folder: model and tokenizer.
        tokens: size of the tokenizer.

    Returns:
        "mass": largest probability of the surplus rows at any position; "second_moment": mean of
        log(1 - mass)^2 over the positions, nats^2.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt").input_ids
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    with torch.inference_mode():
        log_probs = model(ids).logits[0].to(torch.float64).log_softmax(-1)
    inside = log_probs[:, :tokens].logsumexp(-1)
    return {
        "mass": float(-torch.expm1(inside).min()),
        "second_moment": float(inside.square().mean()),
    }


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(surplus(sys.argv[1], int(sys.argv[2])))}\n")
