"""The planted bugs, as data."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A bug: its name, the promise that it breaks, the text that it replaces, and the test that catches it."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    test: str


def exact(family):
    """The exact losses of one family."""
    return f"tests/audit/test_audit_exact.py::test_no_loss_exceeds_its_claim[{family}]"


def replay(family):
    """The replays of one family."""
    return f"tests/audit/test_audit_replay.py::test_with_the_noisy_answers_frozen_everything_is_the_same[{family}]"


_PRIVACY = "tests/privacy"
_NOISE = "tests/unit/private/noise"

MUTANTS = [
    # ------------------------------------------------------------------------------------------------ what is drawn
    Mutant(
        "Laplace noise at 99% of its scale",
        "noise scale",
        "model/noise.py",
        "return budget / stretch\n",
        "return budget / stretch / Fraction(99, 100)\n",
        exact("tables"),
    ),
    Mutant(
        "Gaussian variance 1/(3 beta)",
        "noise scale",
        "model/noise.py",
        "return 1 / (2 * budget)\n",
        "return 1 / (3 * budget)\n",
        exact("trees"),
    ),
    Mutant(
        "the stretch of centred rows is forgotten",
        "noise scale",
        "private/blocks.py",
        "design.law.parameter(Fraction(budget), block.stretch)",
        "design.law.parameter(Fraction(budget))",
        exact("tables"),
    ),
    Mutant(
        "multipliers of Helmert rows are ignored",
        "noise scale",
        "private/blocks.py",
        "np.ones(block.columns, np.int64) if block.multipliers is None else block.multipliers",
        "np.ones(block.columns, np.int64)",
        exact("tables"),
    ),
    Mutant(
        "one draw for all cells of a table",
        "independent draws",
        "private/blocks.py",
        "noise.laplace(parameters, block.columns, entropy)",
        "noise.laplace(parameters, 1, entropy)",
        exact("tables"),
    ),
    Mutant(
        "one draw for all repetitions of a sketch",
        "independent draws",
        "private/blocks.py",
        "noisy = exact + drawn(design, block, entropy, noise)",
        "noisy = exact + (shared := shared if block.lines.start else drawn(design, block, entropy, noise))",
        exact("sketches"),
    ),
    Mutant(
        "sums of a cube share the draws of its counts",
        "independent draws",
        "private/measure.py",
        "    done = plan.carried_out(",
        "    for (_, one), (_, two) in zip(list(drawn.values())[:1], list(drawn.values())[1:]):\n"
        "        for counts_of, sums_of in zip(one.values, two.values):\n"
        "            sums_of += counts_of\n"
        "    done = plan.carried_out(",
        exact("cubes"),
    ),
    Mutant(
        "empty cells get no noise",
        "every cell has noise",
        "private/blocks.py",
        "noisy = exact + drawn(design, block, entropy, noise)",
        "noisy = exact + (exact != 0) * drawn(design, block, entropy, noise)",
        exact("tables"),
    ),
    Mutant(
        "the domain is what occurs in the data",
        "domains are declared",
        "private/blocks.py",
        "for block in design.blocks():",
        "for block in design.blocks() if counts.rows else []:",
        exact("tables"),
    ),
    Mutant(
        "rows of a matrix without people are published exactly",
        "every number has noise",
        "private/blocks.py",
        "noisy = exact + drawn(design, block, entropy, noise)",
        "noisy = exact + drawn(design, block, entropy, noise) * ((exact != 0) | (block.columns > 1))",
        exact("matrices"),
    ),
    Mutant(
        "the first level of a tree gets no noise",
        "every number has noise",
        "private/blocks.py",
        "noisy = exact + drawn(design, block, entropy, noise)",
        "noisy = exact + drawn(design, block, entropy, noise) * (block.array > 0)",
        exact("trees"),
    ),
    # ----------------------------------------------------------------------------------------------- the samplers
    Mutant(
        "noise cut off at 20",
        "the law of the noise",
        "private/noise/laplace.py",
        "        noise *= sign\n        return noise",
        "        noise *= sign\n        return np.clip(noise, -20, 20)",
        "tests/statistics/test_noise_moments.py::test_laplace_moments",
    ),
    Mutant(
        "floats decide what the filter cannot",
        "exact noise",
        "private/noise/laplace.py",
        "return k, value < 0.5",
        "return k, value < 2.0",
        f"{_NOISE}/test_noise_laplace.py::test_inversion_and_filter_over_every_word",
    ),
    Mutant(
        "Gaussian noise from numpy's floats",
        "exact noise",
        "private/noise/gaussian.py",
        "        noise[rows, columns] = _draw(values, index[rows], multipliers[columns], entropy, root)",
        "        spread = np.multiply.outer(root[index[rows]], np.sqrt(multipliers[columns]))\n"
        "        noise[rows, columns] = np.rint(spread * np.random.default_rng().standard_normal(spread.shape))",
        f"{_NOISE}/test_noise_parameters.py::test_the_same_seed_gives_the_same_noise",
    ),
    Mutant(
        "zero has twice its probability",
        "the law of the noise",
        "private/noise/laplace.py",
        "-np.log1p(np.expm1(-near) / 2))",
        "0.0 * near)",
        f"{_NOISE}/test_noise_laplace.py::test_inversion_and_filter_over_every_word",
    ),
    Mutant(
        "a seed in private mode",
        "unforeseeable noise",
        "private/measure.py",
        "entropy = SystemEntropy() if entropy is None else entropy",
        "entropy = type('E', (), dict(private=True, words=(s := __import__('hushcube.private.noise', fromlist=['x'])"
        ".SeededEntropy(1)).words, half_words=s.half_words))() if entropy is None else entropy",
        "tests/audit/test_audit_entropy.py",
    ),
    Mutant(
        "seeded noise is called private",
        "seeded releases are stamped",
        "private/noise/entropy.py",
        "    private = False\n",
        "    private = True\n",
        f"{_NOISE}/test_noise_entropy.py::test_only_the_system_is_private",
    ),
    # ----------------------------------------------------------------------------------------------- what it costs
    Mutant(
        "the last set is left out of the cost",
        "all sets are paid for",
        "costs/row_cost.py",
        "(column(basis, batch.shape, pure=pure) * exact_sum(spent[batch.ids]) for batch in measured.batches)",
        "(column(basis, batch.shape, pure=pure) * exact_sum(spent[batch.ids]) for batch in measured.batches[:2])",
        exact("tables"),
    ),
    Mutant(
        "a replaced row costs as much as one that is added",
        "the factor of replace-one",
        "costs/row_cost.py",
        "return 2 * exact_sum(spent)",
        "return exact_sum(spent)",
        exact("tables"),
    ),
    Mutant(
        "the squared norm of replaced rows misses its factor 2",
        "the factor of replace-one",
        "costs/row_cost.py",
        "return float((1 if pure else 2) * (f[0] - f.min()))",
        "return float(f[0] - f.min())",
        exact("tables"),
    ),
    Mutant(
        "the L2 norm in place of the L1 norm",
        "the norm of the cost",
        "costs/row_cost.py",
        "norm = basis.l1_column if pure else basis.l2_column",
        "norm = basis.l2_column",
        exact("tables"),
    ),
    Mutant(
        "trees forget that halves have opposite signs",
        "the norm of the cost",
        "designs/tree/design.py",
        "factor = (m < parting) - 1.0 * (haar & (m == parting))",
        "factor = (m < parting) * 1.0",
        f"{_PRIVACY}/test_tree_cost.py::test_any_trees_cost_at_most_what_is_claimed",
    ),
    Mutant(
        "cells of a sketch that share a bucket cost nothing",
        "the norm of the cost",
        "designs/sketch/design.py",
        "lines[:, r] = np.where(apart, 2, (2 if pure else 4) * opposite)",
        "lines[:, r] = np.where(apart, 2, 0 * opposite)",
        exact("sketches"),
    ),
    Mutant(
        "k rows of a person cost rho / k",
        "several rows per person",
        "costs/calibrate.py",
        "return privacy.rho / k**2",
        "return privacy.rho / k",
        exact("2 rows per person"),
    ),
    Mutant(
        "a person with fewer rows is forgotten",
        "several rows per person",
        "model/privacy.py",
        'return "add-remove", "replace-one"',
        'return ("replace-one",)',
        exact("2 rows per person"),
    ),
    Mutant(
        "the total is public with several rows per person",
        "what is public",
        "model/privacy.py",
        'return self.neighbours == "replace-one" and self.rows_per_person == 1',
        'return self.neighbours == "replace-one"',
        f"{_PRIVACY}/test_person_cost.py::test_the_number_of_rows_is_public_only_where_one_row_replaces_one_row",
    ),
    Mutant(
        "budgets are rounded up",
        "rounding against ourselves",
        "designs/budgets.py",
        "    while spent(budgets) > allowed:  # rounded against ourselves\n"
        "        budgets = budgets * (1 - 2.0**-50)\n",
        "    budgets = np.nextafter(budgets, np.inf)\n",
        exact("tables"),
    ),
    Mutant(
        "a plan's cost is not checked",
        "plans are checked",
        "designs/design.py",
        "        if spent > allowed:\n            raise BudgetExceeded(spent, allowed, unit)",
        "        del spent",
        f"{_PRIVACY}/test_plan_files.py::test_budgets_a_billionth_higher_are_refused",
    ),
    Mutant(
        "the cost is not checked where noise is drawn",
        "plans are checked",
        "private/measure.py",
        "    interrupts.check()\n    plan.check_cost()\n",
        "    interrupts.check()\n",
        f"{_PRIVACY}/test_checked_again.py::test_the_cost_is_checked_again_where_noise_is_drawn",
    ),
    Mutant(
        "budgets of a plan can be changed",
        "plans are frozen",
        "designs/design.py",
        'object.__setattr__(self, "budgets", frozen(self.budgets, np.float64))',
        'object.__setattr__(self, "budgets", np.asarray(self.budgets, np.float64))',
        f"{_PRIVACY}/test_checked_again.py::test_no_array_of_a_plan_can_be_written_to",
    ),
    Mutant(
        "parts of a cube may cost more than the whole",
        "parts add up",
        "planning/plan.py",
        "if given > whole:",
        "if given > 2 * whole:",
        f"{_PRIVACY}/test_checked_again.py::test_the_parts_of_a_cube_are_checked_again",
    ),
    Mutant(
        "a sum is protected like a count",
        "sums",
        "planning/plan.py",
        "rows *= measure.largest",
        "rows *= 1",
        exact("cubes"),
    ),
    Mutant(
        "values of both signs count once",
        "sums",
        "planning/plan.py",
        'neighbours, rows = "add-remove", 2 * rows',
        'neighbours, rows = "add-remove", rows',
        f"{_PRIVACY}/test_cube_cost.py::test_nobody_costs_more_than_the_guarantee",
    ),
    Mutant(
        "an exact delta loses a thousandth",
        "calibration",
        "costs/calibrate.py",
        "near * (1 + slack) - math.exp(epsilon) * far * (1 - slack)",
        "near * (1 - 1e-3) - math.exp(epsilon) * far * (1 - slack)",
        exact("tables"),
    ),
    Mutant(
        "smoothing adds no variance",
        "calibration",
        "costs/calibrate.py",
        "return math.log(8 * affected / _allowance(float(_given(privacy.epsilon)))) / (2 * math.pi**2)",
        "return 1e-9",
        f"{_PRIVACY}/test_calibration.py::test_smoothing_variance_keeps_all_numbers_within_the_allowance",
    ),
    Mutant(
        "the first layer of a stack is free",
        "what was spent adds up",
        "designs/stacked/layer.py",
        "for privacy in layers), Fraction(0))",
        "for privacy in layers[1:] or layers), Fraction(0))",
        exact("stacks"),
    ),
    Mutant(
        "layers may cost more than the stack allows",
        "what was spent adds up",
        "designs/stacked/design.py",
        "            if spent > whole:\n",
        "            if spent > 100 * whole:\n",
        f"{_PRIVACY}/test_stack_cost.py::test_a_stack_in_a_file_is_checked_again",
    ),
    Mutant(
        "layers may have neighbours of their own",
        "one kind of neighbours",
        "designs/stacked/layer.py",
        "if (own.neighbours, own.rows_per_person) != (whole.neighbours, whole.rows_per_person):",
        "if own.rows_per_person != whole.rows_per_person:",
        "tests/contract/test_stacks.py::test_the_guarantee_may_be_what_the_layers_were_allowed",
    ),
    Mutant(
        "layers are drawn with twice their budgets",
        "all sets are paid for",
        "designs/stacked/design.py",
        "yield replace(block, array=block.array + arrays, sets=block.sets + sets)",
        "yield replace(block, array=block.array + arrays, sets=block.sets + sets, budgets=2 * block.budgets)",
        exact("stacks"),
    ),
    # --------------------------------------------------------------------------------------------- adaptive methods
    Mutant(
        "iresamp does not compare a sample with the budget",
        "the budget of a run",
        "private/adaptive/resampling.py",
        "if subject.cost(more) > subject.allowed or more[at] > limits[at]:",
        "if subject.cost(totals) > subject.allowed or more[at] > limits[at]:",
        exact("adaptive methods"),
    ),
    Mutant(
        "ireduct stops one step too late",
        "the budget of a run",
        "private/adaptive/ireduct.py",
        "    return low\n",
        "    return min(low + 1, order.size)\n",
        exact("adaptive methods"),
    ),
    Mutant(
        "the second phase is chosen from exact counts",
        "decisions from noisy answers",
        "private/adaptive/resampling.py",
        "second = second_rates(subject, first)",
        "second = second_rates(subject, [subject.truth[at] for at in chosen])",
        exact("adaptive methods"),
    ),
    Mutant(
        "ireduct stops when exact counts are good enough",
        "decisions from noisy answers",
        "private/adaptive/ireduct.py",
        "    levels, met = choose_levels(subject, grids, paths)",
        "    levels, met = choose_levels(subject, grids, paths)\n"
        "    levels = levels - (levels > 0) * (int(sum(t.sum() for t in subject.truth)) % 2)",
        exact("adaptive methods"),
    ),
    Mutant(
        "fresh noise for every refinement",
        "refined answers cost what the last one costs",
        "private/adaptive/paths.py",
        "noise[moving] += self._laws.each(k - 1, entropy)",
        "noise[moving] = self._laws.each(k - 1, entropy)",
        f"{_PRIVACY}/test_adaptive_privacy.py::test_outcomes_of_neighbours_are_alike_within_epsilon",
    ),
    # ------------------------------------------------------------------------------------------------ whose rows count
    Mutant(
        "values beyond the bounds are not clipped",
        "bounded values",
        "private/engines/coding.py",
        "return np.clip(np.rint(scaled), measure.low, measure.high).astype(np.int64), refused",
        "return np.rint((values - float(measure.center)) / float(measure.resolution)).astype(np.int64), refused",
        exact("cubes"),
    ),
    Mutant(
        "a missing value counts as the smallest 64-bit integer",
        "bounded values",
        "private/engines/coding.py",
        "    values[missing] = float(measure.center if measure.missing is None else measure.missing)\n",
        "",
        exact("cubes"),
    ),
    Mutant(
        "one row too many of a person",
        "bounded rows",
        "private/engines/bounding.py",
        'f"r = least(r, {self.most})"',
        'f"r = least(r, {self.most + 1})"',
        exact("bounded units"),
    ),
    Mutant(
        "the rows that count are the first ones",
        "which rows count",
        "private/engines/bounding.py",
        'ranked = "row_number() OVER (PARTITION BY who ORDER BY hash(xor(s, i::UBIGINT))) AS r"',
        'ranked = "row_number() OVER (PARTITION BY who) AS r"',
        f"{_PRIVACY}/test_unit_bound.py::test_every_set_of_rows_is_as_likely",
    ),
    Mutant(
        "a guarantee for fewer rows than the unit lets count",
        "the unit fits the guarantee",
        "model/schema.py",
        "if self.unit is not None and self.unit.max_rows != promised:",
        "if self.unit is not None and self.unit.max_rows < promised:",
        "tests/unit/model/test_unit.py",
    ),
    # -------------------------------------------------------------------------------------------------- what is said
    Mutant(
        "a printed epsilon is rounded down",
        "statements",
        "text.py",
        "return _digits(value, ROUND_CEILING)",
        "return _digits(value, ROUND_FLOOR)",
        f"{_PRIVACY}/test_statements.py::test_the_ex_post_loss_in_the_statement_is_computed",
    ),
    Mutant(
        "the statement repeats what the details say",
        "statements",
        "designs/design.py",
        "        self._check_claims()\n",
        "",
        f"{_PRIVACY}/test_statements.py::test_a_plan_that_was_not_carried_out_tells_of_no_run",
    ),
    Mutant(
        "any strategy may be named in a plan file",
        "statements",
        "planning/plan.py",
        "        check_strategy(plan)\n",
        "",
        f"{_PRIVACY}/test_statements.py::test_unknown_strategies_are_refused",
    ),
    Mutant(
        "names in a statement are not escaped",
        "statements",
        "bundle/statement.py",
        'f"# Privacy of the {kind} {code(schema.name)}",',
        'f"# Privacy of the {kind} `{schema.name}`",',
        f"{_PRIVACY}/test_statements.py::test_names_and_labels_cannot_write_the_statement",
    ),
    Mutant(
        "the digest of a plan file is not compared",
        "plans are checked",
        "planning/plan.py",
        '    if not plan.digest == digest == raw.get("digest"):',
        "    if False:",
        f"{_PRIVACY}/test_plan_files.py::test_a_changed_plan_without_a_new_digest_is_refused",
    ),
    Mutant(
        "noise is drawn before the ledger knows",
        "a key draws once",
        "private/measure.py",
        "    if before_noise is not None:\n        before_noise()\n",
        "",
        "tests/cli/test_charged_cli.py::test_noise_that_is_not_published_is_not_drawn_again[full-1]",
    ),
    Mutant(
        "noise is drawn again under a key",
        "a key draws once",
        "ledger/ledger.py",
        'if found.begun or found.state != "unfinished":\n                problem = f"{visible(key)!r} has drawn',
        'if False:\n                problem = f"{visible(key)!r} has drawn',
        "tests/cli/test_charged_cli.py::test_only_one_of_two_who_counted_draws",
    ),
    Mutant(
        "rows of other parts are counted",
        "parts are disjoint",
        "private/engines/declared.py",
        "if table.sum() != table[",
        "if False and table[",
        "tests/unit/private/test_declared.py::test_every_row_must_be_of_the_part",
    ),
    Mutant(
        "the number of rows is published",
        "nothing but noisy answers is published",
        "private/measure.py",
        "private = entropy.private and noise is None",
        "private = bool(counts.rows % 2)",
        replay("tables"),
    ),
]
