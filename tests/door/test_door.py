"""The door: what `import hushcube as hc` offers, how fast, and that nothing inside takes a verb's name."""

import ast
import inspect
import os
import pkgutil
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import hushcube as hc
from hushcube import errors

VERBS = {
    "chart",
    "check_schema",
    "compare",
    "draft_schema",
    "evaluate",
    "evaluate_release",
    "explore",
    "export",
    "find_budget",
    "open",
    "plan",
    "read_csv",
    "recover",
    "release",
    "report",
    "serve",
    "synthesize",
    "verify",
    "what_if",
    "advise",
}
NOUNS = {
    "Account",
    "Attribute",
    "Charge",
    "Comparison",
    "Estimate",
    "FaceValue",
    "Facts",
    "Ledger",
    "Level",
    "Measure",
    "Plan",
    "Privacy",
    "Release",
    "Request",
    "Schema",
    "Table",
    "Token",
    "Tokens",
    "Unit",
    "Workload",
}


def run(code: str) -> str:
    """What a fresh Python prints."""
    where = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": where},
    )
    return done.stdout


def test_every_verb_noun_and_error_is_at_the_door():
    tree = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert VERBS | NOUNS | tree <= set(hc.__all__)
    assert hc.__all__ == sorted(set(hc.__all__))
    for name in hc.__all__:
        found = getattr(hc, name)
        assert found is getattr(hc, name), name
        assert inspect.getdoc(found), name
        assert inspect.isfunction(found) if name in VERBS else inspect.isclass(found), name
        assert found.__name__ == name


def test_dir_shows_the_public_names_and_nothing_else():
    assert dir(hc) == sorted([*hc.__all__, "__version__", "errors", "samples"])
    assert dir(hc) == ast.literal_eval(run("import hushcube; print(dir(hushcube))"))
    assert hc.errors is errors and hc.samples.TITANIC
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        hc.plans  # noqa: B018 - that it is not there is what is tested


def test_help_has_real_signatures_and_says_what_a_verb_does():
    for name in VERBS:
        verb = getattr(hc, name)
        text = pydoc.render_doc(verb, renderer=pydoc.plaintext)
        assert f"{name}({next(iter(inspect.signature(verb).parameters))}" in text, name
        assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(verb).parameters.values()), name
    assert "neighbours" in pydoc.render_doc(hc.plan, renderer=pydoc.plaintext)


def test_type_checkers_see_what_python_finds():
    source = Path(hc.__file__).read_text()
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module.removeprefix("hushcube.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert seen.keys() - {"errors", "samples"} == set(hc.__all__)
    for name in hc.__all__:
        assert getattr(hc, name).__module__ == f"hushcube.{seen[name]}", name


def test_importing_is_quick():
    code = """
import sys, time
start = time.perf_counter()
import hushcube
print(time.perf_counter() - start)
print(sorted({"numpy", "typing", "click", "rich", "yaml", "pyarrow", "re"} & sys.modules.keys()))
"""
    printed = [run(code).splitlines() for _ in range(3)]
    assert min(float(seconds) for seconds, _ in printed) < 0.1
    heavy = ast.literal_eval(printed[0][1])
    assert set(heavy) <= set(ast.literal_eval(run('import sys; print(sorted({"typing", "re"} & sys.modules.keys()))')))


def test_no_submodule_takes_the_name_of_a_verb():
    code = """
import importlib, pkgutil, inspect, hushcube as hc
for found in pkgutil.walk_packages(hc.__path__, "hushcube."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ImportError as problem:
            if problem.name is None or problem.name.startswith("hushcube"):
                raise
print([name for name in hc.__all__ if inspect.ismodule(getattr(hc, name))])
print(all(callable(getattr(hc, name)) for name in hc.__all__))
"""
    assert run(code).splitlines() == ["[]", "True"]
    assert not {found.name for found in pkgutil.iter_modules(hc.__path__)} & set(hc.__all__)
