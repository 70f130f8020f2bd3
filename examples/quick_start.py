# %% [markdown]
# # hushcube in two minutes
# Counts and average stays of a clinic, published with differential privacy: every table adds up, every cell has an
# error bar. `# %%` begins a cell: run this file as a script, or open it as a notebook.

# %%
from pathlib import Path

import pandas as pd

import hushcube as hc

folder = Path(__file__).parent if "__file__" in globals() else Path()
df = pd.read_csv(folder / "encounters.csv")  # 3,000 stays, made up
df.head()

# %% [markdown]
# What is public is declared: the attributes with their possible values, and the bounds of what is averaged.

# %%
schema = hc.Schema.read(folder / "encounters.yaml")
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
