"""One made-up row in the layout of each published set, with its question and its answer."""

import json

LEG = r"Triangle \(ABC\) has legs $3$ and $4$. Find its hypotenuse."

ROWS = {
    "deepscaler": (
        {"problem": LEG, "answer": r"\frac{10}{2}", "solution": r"By Pythagoras, \boxed{5}."},
        (LEG, r"\frac{10}{2}"),
    ),
    "deepscaler without the answer alone": (
        {"problem": LEG, "answer": "", "solution": r"$\boxed{4}$? No: \boxed{\frac{10}{2}}."},
        (LEG, r"\frac{10}{2}"),
    ),
    "dapo": ({"prompt": "Find $2+5$.", "target": "7"}, ("Find $2+5$.", "7")),
    "aime24": (
        {
            "id": 60,
            "problem": "Find $100-27$.",
            "solution": r"It is \boxed{073}.",
            "answer": "073",
            "url": "https://example.org/60",
            "year": "2024",
        },
        ("Find $100-27$.", "73"),
    ),
    "aime25": (
        {"problem": "Find $0+0$.", "answer": 0, "__index_level_0__": 3, "year": 2025},
        ("Find $0+0$.", "0"),
    ),
    "amc23": (
        {"id": 0, "question": "Find $100+42$.", "answer": 142.0, "url": "https://example.org"},
        ("Find $100+42$.", "142"),
    ),
    "amc23 as text in a list": (
        {"question": "Find $3-4$.", "answer": ["-1.0"]},
        ("Find $3-4$.", "-1"),
    ),
    "amc24": (
        {"exam": "12A", "problem_number": 3, "problem": "Find 1/4.", "answer": "0.25"},
        ("Find 1/4.", "0.25"),
    ),
    "math500": (
        {
            "problem": "Convert $(0,3)$ to polar coordinates.",
            "solution": r"We have $\boxed{\left( 3, \frac{\pi}{2} \right)}.$",
            "answer": r"\left( 3, \frac{\pi}{2} \right)",
            "subject": "Precalculus",
            "level": 2,
            "unique_id": "test/precalculus/0.json",
        },
        ("Convert $(0,3)$ to polar coordinates.", r"\left( 3, \frac{\pi}{2} \right)"),
    ),
    "gaokao": (
        {
            "source": "2023/01Q.en",
            "question": r"Find all roots of $x^2=432x-18432$.",
            "lang": "en",
            "answer": "$48$, $384$",
        },
        (r"Find all roots of $x^2=432x-18432$.", "48, 384"),
    ),
    "minerva": (
        {"question": "Give the mass in solar masses.", "answer": r"1.3e-7"},
        ("Give the mass in solar masses.", "1.3e-7"),
    ),
    "minerva as a solution": (
        {
            "problem": "Give the mass.",
            "type": "Introduction",
            "solution": r"Thus \[M = \boxed{4\times 10^{33}} \text{ g}\]",
            "idx": 2,
        },
        ("Give the mass.", r"4\times 10^{33}"),
    ),
    "olympiad": (
        {
            "id": 1606,
            "question": "Find every $n$ with $n^2=4$.",
            "solution": ["Both signs do."],
            "final_answer": ["$-2$", "$2$"],
            "context": None,
            "image_1": None,
            "modality": "Text-only",
            "is_multiple_answer": True,
            "unit": None,
            "answer_type": "Numerical",
            "error": None,
        },
        ("Find every $n$ with $n^2=4$.", "-2, 2"),
    ),
    "olympiad with a context": (
        {"question": "Find $T+1$.", "context": "Let $T=1$.", "final_answer": ["2"]},
        ("Let $T=1$.\n\nFind $T+1$.", "2"),
    ),
    "rows of verl": (
        {
            "data_source": "math_dapo",
            "prompt": [{"role": "user", "content": "Find 1+1."}],
            "ability": "MATH",
            "reward_model": {"style": "rule", "ground_truth": '["2"]'},
            "extra_info": {"split": "train", "index": 0},
        },
        ("Find 1+1.", "2"),
    ),
    "capital letters": ({"Problem": "Find 6*7.", "Answer": "$42$"}, ("Find 6*7.", "42")),
    "an answer that is an object": (
        {"question": "Find 6*7.", "answer": {"target": ["42"]}},
        ("Find 6*7.", "42"),
    ),
}
"""Layout -> row, (question, answer)."""


def rows_of(name: str, number: int) -> list[dict]:
    """Rows of a set in its layout, with different questions."""
    row, (question, _) = ROWS[name]
    text = json.dumps(row)
    (asked,) = (column for column in row if column.lower() in ("problem", "question", "prompt"))
    own = row[asked] if isinstance(row[asked], str) else question
    head = json.dumps(own)[1:-1]
    assert head in text
    return [json.loads(text.replace(head, f"{name}, number {i}: {head}", 1)) for i in range(number)]
