"""Healthy logs of many kinds: sizes, precisions, samplers, what is and is not logged."""

from tests.findings.synthetic import Run

KINDS: dict[str, Run] = {
    "plain": Run(),
    "float16": Run(grid="float16", engine=0.002),
    "bfloat16 engine": Run(engine=0.05),
    "bfloat16 log": Run(engine=0.02, grid="bfloat16"),
    "bfloat16, sharp policy": Run(engine=0.05, sharpness=8.0),
    "temperature .6 on both sides": Run(temperature=0.6, engine=0.02),
    "temperature 1.3 on both sides": Run(temperature=1.3, engine=0.02),
    "long rows": Run(rows=8, length=1500, vocabulary=12, engine=0.02, steps=2),
    "long rows, bfloat16 engine": Run(rows=16, length=1000, vocabulary=8, engine=0.05, steps=1),
    "few short rows": Run(rows=8, length=12, steps=2),
    "four rows": Run(rows=4, length=30, steps=1),
    "many short rows": Run(rows=400, length=5, steps=10),
    "one step": Run(steps=1, rows=128, length=20),
    "no advantages": Run(advantage=None),
    "no versions": Run(versions=False, engine=0.02),
    "no proximal": Run(proximal=False, engine=0.02),
    "no ids, no entropy": Run(ids=False, entropy=False),
    "lags, small drift": Run(lags=(0, 1, 2, 4), walk=0.04, rows=128),
    "lags, small drift, many steps": Run(
        lags=(0, 1, 2, 3), walk=0.05, rows=240, steps=20, length=15
    ),
    "one lag, small drift": Run(lags=(2,), walk=0.05),
    "lag 1 or 8, small drift": Run(lags=(1, 8), walk=0.03, engine=0.03, rows=96),
    "masked prompts": Run(masked=0.3),
    "certain policy": Run(sharpness=20.0, engine=0.02, entropy=False),
    "certain policy in float16": Run(sharpness=20.0, engine=0.05, grid="float16"),
    "in-step updates": Run(update=0.08),
}
