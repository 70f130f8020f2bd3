# %% [markdown]
# # hushcube in two minutes
# Counts and average stays of a clinic, published with differential privacy: every table adds up, every cell has an
# error bar. `# %%` begins a cell: run this file as a script, or open it as a notebook.

# %%
from pathlib import Path

import numpy as np
import pandas as pd

import hushcube as hc

chance = np.random.default_rng(1)
df = pd.DataFrame(
    {
        "sex": chance.choice(["F", "M"], 20_000),
        "age": chance.integers(60, 70, 20_000),
        "outcome": chance.choice(["home", "care home", "transferred"], 20_000, p=[0.8, 0.15, 0.05]),
        "days": chance.integers(1, 15, 20_000),
    }
)

# %% [markdown]
# What is public is declared: the attributes with their possible values, and the bounds of what is averaged.

# %%
schema = hc.Schema.read(Path(__file__).parent / "encounters.yaml" if "__file__" in globals() else "encounters.yaml")
hc.check_schema(schema, df)

# %% [markdown]
# Plan. No data is read, so this costs nothing: the expected error of every table.

# %%
plan = hc.plan(schema, "<=2-way", measures=["avg(days)"], epsilon=1, neighbours="add-remove")
plan

# %% [markdown]
# Release, once, and look at the tables.

# %%
release = hc.release(plan, df, out="published")
release

# %%
release["age*sex"]

# %%
release.table("age*sex", "avg(days)", where={"sex": "F"})

# %%
release["outcome"].to_pandas()

# %%
release.estimate("age*sex", where={"sex": "F", "age": [65, 66]})

# %% [markdown]
# Whoever gets the folder opens it in the same way, and can check what it promises.

# %%
hc.open("published")

# %%
hc.verify("published")
