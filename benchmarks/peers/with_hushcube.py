"""hushcube: what `auto` plans, measured and made to agree, in memory."""

from one_job import Job, serve

import hushcube as hc


def answer(job: Job):
    import pyarrow as pa

    names = [f"a{i}" for i in range(len(job.sizes))]
    schema = hc.Schema(tuple(hc.Attribute(name=name, codes=n) for name, n in zip(names, job.sizes, strict=True)))
    words = ["*".join(names[i] for i in table) for table in job.tables]
    guarantee = {"rho": str(job.rho)} if job.rho else {"epsilon": str(job.epsilon)}
    plan = hc.plan(schema, ",".join(words), neighbours="add-remove", **guarantee)
    release = hc.release(plan, pa.table({name: job.codes[:, i] for i, name in enumerate(names)}))
    return [release.table(word).values for word in words]


serve(hc.__version__, answer)
