"""The two cubes of the examples, hospital stays and the census, as report and explorer."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from browser.watching import explored, serious
from datasets import ROOT, shared

pytestmark = [pytest.mark.service, pytest.mark.slow]


@dataclass(frozen=True)
class Example:
    """As docs/real-data.md has it, of the first rows."""

    name: str
    data: str
    words: tuple[str, ...]
    measures: tuple[str, ...]
    guarantee: dict[str, str]

    def release(self):
        schema = hc.Schema.read(ROOT / "examples" / self.name / "schema.yaml")
        with pq.ParquetFile(shared(self.data)) as file:
            rows = next(file.iter_batches(20_000))
        plan = hc.plan(schema, self.words, measures=self.measures, neighbours="add-remove", **self.guarantee)
        return hc.release(plan, pa.Table.from_batches([rows]))


HOSPITAL = Example(
    "hospital",
    "diabetes130_encounters.parquet",
    ("age*gender*diagnosis@chapter*readmitted", "age*diagnosis@chapter,diagnosis@chapter*readmitted"),
    ("avg(days)", "avg(medications)"),
    {"epsilon": "2"},
)
CENSUS = Example(
    "acs",
    "acs2024_persons49.parquet",
    ("state@region*age@band*sex@name*education@level", "state@division*age@band", "state@name*sex@name"),
    ("avg(wage)",),
    {"rho": "0.1"},
)


@pytest.fixture(scope="module", params=[HOSPITAL, CENSUS], ids=lambda example: example.name)
def release(request):
    return request.param.release()


def test_their_reports_can_be_read(look, release, tmp_path):
    page = look(hc.report(release, tmp_path / "page.html"), width=1600)
    assert page.locator("#figure table").count() == 1 and serious(page) == []


def test_their_explorers_answer_roll_ups_that_are_not_published(look, release):
    schema = release.schema.declared
    coarse = [f"{a.name}@{a.grouped[-1].name}" for a in schema.attributes if a.grouped][:1]
    with explored(release) as address:
        page = look(f"{address}/#table={coarse[0]}")
        assert serious(page) == []
        assert page.locator("#figure table tbody tr").count() >= len(schema.seen(coarse[0]).labels)
