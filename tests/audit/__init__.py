"""The audit: attacks on what hushcube promises, each with figures that can be published.

    exact        the worst privacy loss over all neighbours of tiny tables, from the draws that were really made
    costs        what plans and runs say they cost, on all databases of a few rows and on random runs
    replay       neighbouring data with the noisy answers frozen: nothing else may differ
    statistical  lower bounds on epsilon from many releases with real noise
    mutants      planted privacy bugs, each caught by a test
    fuzz         generated input for every file and word that the command line reads
    damage       bytes and files of small releases changed one at a time: `verify` finds each
    faults       errors, signals and kills at every file-system call                       [tests/faults]
    ledgers      the same for ledgers, and many clients at once                            [tests/faults]

A part is a module with `figures(scale) -> dict`: `scale` is "short" (seconds, in `make test`) or "long" (`make audit`).
The dictionary is JSON:

    title, attacked, how       the heading, and two short texts in Markdown
    false_alarms               the chance that an intact program fails, in words (optional)
    figures                    {what was counted: number or text}
    table                      {"columns": [...], "rows": [[...], ...]} (optional)
    broken                     a line for each violation, for whoever runs the audit (optional)
    violations                 how often a promise was broken; the audit fails unless it is 0

`python -m audit` with `tests` on the path runs all parts and writes docs/audit.md.
"""
