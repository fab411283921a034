import re

import pytest

from m2po_lab.findings.catalog import CATALOG
from m2po_lab.report.glossary import TERMS, glossary


def test_a_word_is_explained_where_it_occurs_and_nothing_else():
    assert glossary("rewards fall") == ""
    assert glossary("lag 3") == "lag: trainer updates since a token was sampled."


def test_a_meaning_comes_after_the_words_it_uses():
    text = glossary("the active tokens exceed M2PO's budget, ESS is .9, a clip, k1, k3, chi2")
    seen = [re.match(r"[\w ,/]+", part)[0] for part in re.split(r"(?<=\.) (?=[\w ,/]+: )", text)]
    for i, word in enumerate(seen):
        (meaning,) = [meaning for name, _, meaning in TERMS if name == word]
        used = [name for name, pattern, _ in TERMS if re.search(pattern, meaning)]
        assert set(used) <= {*seen[:i], word}


@pytest.mark.parametrize("entry", CATALOG.values(), ids=CATALOG)
def test_a_finding_never_needs_more_than_a_few_lines_of_words(entry):
    assert len(glossary(entry.title + entry.rule)) < 1000
