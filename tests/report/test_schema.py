import copy

import jsonschema
import pytest

from m2po_lab.report.document import schema
from tests.report import examples


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("report", [examples.full(), examples.bare()], ids=["full", "bare"])
def test_a_report_in_the_shape_of_the_contract_is_valid(validator, report):
    validator.validate(report)


def _wrong(path, value):
    report = copy.deepcopy(examples.full())
    target = report
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return report


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "m2po-lab/report/2"),
        (("primary",), "behavior/current"),
        (("tokens", "kept"), -1),
        (("ratios", "current/behavior", "all", "m2"), -0.1),
        (("ratios", "current/behavior", "all", "ess_fraction"), 1.5),
        (("ratios", "current/behavior", "all"), None),
        (("ratios", "current/behavior", "by_lag", 0), {"lag": 0}),
        (("findings", 0, "severity"), "fatal"),
        (("not_computable", 0), {"what": "x"}),
        (("objectives", "ppo", "zero_gradient_fraction"), 17.9),
    ],
)
def test_a_report_that_breaks_the_contract_is_not(validator, path, value):
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(_wrong(path, value))
