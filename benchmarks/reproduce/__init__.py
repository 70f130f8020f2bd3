"""Every experiment of the four papers, rerun: `make reproduce`, or `python -m benchmarks.reproduce [FIGURE ...]`.

A figure is a `Figure` [figure.py] in the tuple FIGURES of its paper's module, which `__main__.PAPERS` lists. It says

    jobs(quick)       its points, as mappings of plain values, each with a seed of its own by `seed_of(job)`;
                      a few tiny ones if quick: all of them together take a second or two
    measure(job)      what a point comes to, as a mapping of plain values; a function of a module, for it runs in
                      processes side by side, or, where a figure measures time (`alone`), one job after another
    pictures(rows)    charts by the last part of their names [pictures.py]; rows are jobs with what they came to
    tables(rows)      titles and rows of tables
    claims(rows)      what the paper says, with a verdict that is computed from the rows: `judged`, or a `Claim`

What was measured is kept in a file, a line for each point: a run that was stopped goes on where it was [points.py].
Then the figure's section of docs/reproduction.md is written, with its pictures in docs/pictures/reproduction; the
sections of other figures stay, and the table of all verdicts is made from all sections [page.py]. `--quick` keeps
nothing and writes into a temporary folder, or where `--out` says.

`data.py` has the data, or declared stand-ins of the same sizes where the shared folder is absent: what a job measured
on a stand-in says so by `"stand_in": True`. `runs.py` plans a method once, draws its noise some times, and has its
errors.
"""
