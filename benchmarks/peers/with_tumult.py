"""Tumult Analytics: a query grouped by all combinations of values for each table, on Spark in local mode."""

import os
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
from one_job import Job, serve
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, RhoZCDPBudget, Session

os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark's workers are another Python
spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def answer(job: Job):
    names = [f"a{i}" for i in range(len(job.sizes))]
    budget = RhoZCDPBudget if job.rho else PureDPBudget
    rows = spark.createDataFrame(pd.DataFrame(job.codes.astype(np.int64), columns=names))
    session = Session.from_dataframe(
        budget(job.rho or job.epsilon), source_id="people", dataframe=rows, protected_change=AddOneRow()
    )
    found = []
    for table in job.tables:
        keys = KeySet.from_dict({names[i]: list(range(job.sizes[i])) for i in table})
        query = QueryBuilder("people").groupby(keys).count(name="people")
        told = session.evaluate(query, privacy_budget=budget(job.share * (1 - 1e-9))).toPandas()
        noisy = np.zeros(job.shape(table))
        noisy[tuple(told[names[i]].to_numpy() for i in table)] = told["people"].to_numpy()
        found.append(noisy)
    return found


serve(version("tmlt.analytics"), answer)
