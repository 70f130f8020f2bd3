"""OpenDP: every table counted by its categories, with its share of the guarantee, and exact noise."""

from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
from one_job import Job, serve
from opendp.typing import L1Distance, L2Distance

dp.enable_features("contrib")


def answer(job: Job):
    from opendp.mod import binary_search_param

    found = []
    for table in job.tables:
        shape = job.shape(table)
        cells = np.ravel_multi_index([job.codes[:, i] for i in table], shape)
        categories = list(range(int(np.prod(shape))))
        counted = dp.t.make_count_by_categories(
            dp.vector_domain(dp.atom_domain(T=int)),
            dp.symmetric_distance(),
            categories,
            null_category=False,
            MO=L2Distance[int] if job.rho else L1Distance[int],
        )
        noise = dp.m.then_gaussian if job.rho else dp.m.then_laplace
        scale = binary_search_param(lambda s, c=counted, n=noise: c >> n(s), d_in=1, d_out=job.share, T=float)
        found.append(np.array((counted >> noise(scale))(cells.tolist())).reshape(shape))
    return found


serve(version("opendp"), answer)
