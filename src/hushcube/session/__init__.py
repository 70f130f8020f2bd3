"""Online cubes: questions answered one by one from one account, every answer consistent with all the others.

`knowledge.py` is what is known so far, `choosing.py` finds the cheapest thing to measure next (a step, `steps.py`), and
`policy.py` is what is expected of the questions to come: all of it without data. `measuring.py` is the only module that
reaches into `private/`.
"""
