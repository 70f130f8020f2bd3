"""The least maximum variance of a cell, as published for ResidualPlanner [Xiao et al. 2023], to the digits printed."""

import pytest

from helpers import make_plan, make_schema
from hushcube.designs.request import Request
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload

SIZES = (50, 100, 7, 4, 2)


@pytest.mark.parametrize(
    ("words", "published"), [("1-way", 4.346), ("2-way", 7.897), ("3-way", 7.706), ("<=3-way", 13.22)]
)
def test_the_published_least_maximum_at_rho_one_half(words, published):
    privacy = Privacy.of(rho="1/2", neighbours="add-remove")
    request = Request(Workload.parse(words, make_schema(SIZES)), privacy, objective="max")
    plan = make_plan(request, "residual")
    assert f"{plan.errors.max_variance(exact=False):.4g}" == f"{published:.4g}"
    assert f"{plan.errors.max_variance():.4g}" == f"{published:.4g}"
