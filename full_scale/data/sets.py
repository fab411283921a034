"""The data of the paper's runs: one training set or the other, and eight sets for evaluation.

Hub ids and repetitions: the authors' scripts (github.com/Infini-AI-Lab/M2PO,
examples/data_preprocess). Numbers of rows: the published files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class DataSet:
    """A published set of problems.

    Attributes:
        name: what options and files call it.
        label: column of the paper's Table 1; empty for training sets.
        split: `train` or `test`, what it is used for here.
        hub_id: repository on the Hugging Face hub, and `data_source` of the rows.
        hub_split: split of the repository that is read.
        rows: problems in the published files.
        repeat: how often a row is in test.parquet; four samples of each copy are avg@16.
        samples: k of the paper's avg@k.
        integer: whether every answer is an integer, so that 073 is 73.
        aliases: what generations made with other scripts call it.
    """

    name: str
    label: str
    split: str
    hub_id: str
    hub_split: str
    rows: int
    repeat: int = 1
    samples: int = 4
    integer: bool = False
    aliases: tuple[str, ...] = ()


def _sets() -> Iterator[DataSet]:
    deepscaler = "agentica-org/DeepScaleR-Preview-Dataset"
    dapo = "haizhongzheng/DAPO-Math-17K-cleaned"
    gaokao = "MARIO-Math-Reasoning/Gaokao2023-Math-En"
    yield DataSet("deepscaler", "", TRAIN, deepscaler, "train", 40315)
    yield DataSet("dapo", "", TRAIN, dapo, "train", 17917, aliases=("dapo_math", "math_dapo"))
    for name, hub_id, aliases in (
        ("aime24", "HuggingFaceH4/aime_2024", ("aime2024", "aime_2024")),
        ("aime25", "yentinglin/aime_2025", ("aime2025", "aime_2025")),
    ):
        yield DataSet(
            name=name,
            label=name.upper(),
            split=TEST,
            hub_id=hub_id,
            hub_split="train",
            rows=30,
            repeat=4,
            samples=16,
            integer=True,
            aliases=(f"{hub_id}_x4", *aliases),
        )
    yield DataSet("amc23", "AMC23", TEST, "math-ai/amc23", "test", 40)
    yield DataSet("amc24", "AMC24", TEST, "rawsh/2024_AMC12", "train", 45)
    math500 = ("math_500", "hendrycks_math500", "math-ai/math500")
    yield DataSet(
        "math500", "Math500", TEST, "HuggingFaceH4/MATH-500", "test", 500, aliases=math500
    )
    # The authors' copy is a file of their repository, raw-data/gaokao-2023en-test.jsonl.
    gaokao_names = ("gaokao2023en", "gaokao_2023_en", "gaokao-2023en-test")
    yield DataSet("gaokao", "Gaokao", TEST, gaokao, "train", 385, aliases=gaokao_names)
    minerva = ("minerva_math", "minervamath")
    yield DataSet("minerva", "Minerva", TEST, "math-ai/minervamath", "test", 272, aliases=minerva)
    olympiad = ("olympiadbench", "olympiad_bench", "Hothan/OlympiadBench")
    yield DataSet(
        "olympiad", "Olympiad", TEST, "math-ai/olympiadbench", "test", 674, aliases=olympiad
    )


SETS: Mapping[str, DataSet] = MappingProxyType({each.name: each for each in _sets()})
"""Name -> set; evaluation sets in the order of the paper's columns."""

TRAINING = tuple(each.name for each in SETS.values() if each.split == TRAIN)
EVALUATION = tuple(each.name for each in SETS.values() if each.split == TEST)

SPELLINGS = {
    spelling.lower(): each
    for each in SETS.values()
    for spelling in (each.name, each.hub_id, *each.aliases)
}


def known(spelling: str) -> DataSet | None:
    """The set of that name, hub id or alias, in any case; None if there is none."""
    return SPELLINGS.get(spelling.strip().lower())
