"""Reading YAML that people write."""

import pytest

from hushcube.errors import SchemaError
from hushcube.model.schema import Schema


@pytest.mark.parametrize("name", ["!!bool x", "!!int ''", "!!timestamp x"])
def test_a_tag_that_does_not_fit_is_refused(name):
    with pytest.raises(SchemaError, match="a tag that does not fit"):
        Schema.from_yaml(f"name: {name}\nattributes: [{{name: a, size: 2}}]\n")
