"""Generated commands and files against the command line: it answers or refuses, and never does anything else.

hostile      texts, numbers and JSON tokens that programs are known to stumble over
documents    trees of JSON and YAML, and single fields of them changed
words        the small languages of options: workloads, targets, conditions, shares, measures
subjects     schemas with rows that fit them
sources      the rows as CSV, Parquet and DuckDB files, whole and damaged
matrices     query matrices in every format, whole and damaged
bundles      releases made once, and copies of them damaged or forged
commands     a case: a folder of files, and a command line for it
judge        runs a case and says which of the requirements it breaks
driver       runs many; `python -m audit.fuzz.driver --help` repeats a single one
"""
