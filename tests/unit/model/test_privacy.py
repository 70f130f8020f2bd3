"""A guarantee is complete, exact and in range, or refused with the field named."""

from decimal import Decimal
from fractions import Fraction

import pytest

from hushcube.errors import PrivacyError
from hushcube.model.privacy import Privacy

OK = {"epsilon": 1, "neighbours": "add-remove"}


@pytest.mark.parametrize("tenth", [0.1, "0.1", "1e-1", "1/10", Decimal("0.1"), Fraction(1, 10), " .1 "])
def test_budgets_mean_the_decimal_that_is_written(tenth):
    assert Privacy.of(epsilon=tenth, neighbours="add-remove").epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"neighbours": None}, "neighbours"),
        ({"neighbours": "both"}, "neighbours"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": None, "delta": 0.1}, "epsilon"),
        ({"rho": 1}, "rho"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": "1/0"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"epsilon": "1e-30"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"delta": "1e-300"}, "delta"),
        ({"rows_per_person": 0}, "rows_per_person"),
        ({"rows_per_person": 1.5}, "rows_per_person"),
        ({"rows_per_person": True}, "rows_per_person"),
        ({"rows_per_person": 2**60}, "rows_per_person"),
    ],
    ids=str,
)
def test_what_is_incomplete_or_out_of_range_is_refused(change, field):
    with pytest.raises(PrivacyError) as caught:
        Privacy.of(**{**OK, **change})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "amounts",
    [
        {"epsilon": "1/3"},
        {"rho": "0.7"},
        {"epsilon": 2, "delta": "1e-9"},
        {"epsilon": 1, "delta": "1e-100"},
        {"epsilon": f"{'7' * 400}/{'9' * 400}", "delta": f".{'3' * 400}e-199"},
    ],
    ids=lambda amounts: str(amounts)[:40],
)
def test_json_form_is_read_back_exactly(amounts):
    privacy = Privacy.of(neighbours="replace-one", rows_per_person=3, **amounts)
    assert Privacy.from_dict(privacy.to_dict()) == privacy
    assert privacy.is_pure == (set(amounts) == {"epsilon"})


@pytest.mark.parametrize("raw", [None, [], {}, {"epsilon": 1}, {**OK, "rows_per_person": 1, "seed": 3}])
def test_json_that_is_no_guarantee_is_refused(raw):
    with pytest.raises(PrivacyError):
        Privacy.from_dict(raw)
