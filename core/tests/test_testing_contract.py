"""A contract cannot be weakened by the class that claims it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from narrowgate.testing import LocalRuleConformance, expected_failure


def test_a_rule_cannot_be_replaced():
    """A test of the contract that is overridden, emptied or taken away stops the class from being made."""
    for replacement in (lambda self: None, None, pytest.mark.skip(reason="later")(lambda self: None)):
        with pytest.raises(TypeError, match=r"TestMine\.test_says_something replaces a rule"):
            type("TestMine", (LocalRuleConformance,), {"test_says_something": replacement})


def test_a_rule_inherited_twice_cannot_be_replaced_either():
    """It makes no difference how many classes stand between."""
    between = type("Between", (LocalRuleConformance,), {})
    with pytest.raises(TypeError, match="replaces a rule"):
        type("TestMine", (between,), {"test_says_something": lambda self: None})


@pytest.mark.parametrize(
    "mark", [pytest.mark.skip, pytest.mark.skipif("sys.platform", reason="x"), pytest.mark.xfail(reason="x")]
)
def test_a_whole_contract_cannot_be_forgiven(mark):
    """Skipping or excusing all rules with one mark is refused, alone and in a list."""
    for marks in (mark, [mark]):
        with pytest.raises(TypeError, match="a whole contract cannot be marked"):
            type("TestMine", (LocalRuleConformance,), {"pytestmark": marks})


def test_an_expected_failure_needs_a_reason():
    """A reason of spaces is none."""
    with pytest.raises(ValueError, match="say why"):
        expected_failure(LocalRuleConformance.test_says_something, reason="  ")


def test_an_expected_failure_with_a_reason_is_accepted_and_marks_no_other_class():
    """The rule of the contract itself stays as it was."""
    excused = expected_failure(LocalRuleConformance.test_says_something, reason="says nothing yet")
    type("TestMine", (LocalRuleConformance,), {"test_says_something": excused})
    (mark,) = [mark for mark in excused.pytestmark if mark.name == "xfail"]
    assert mark.kwargs == {"reason": "says nothing yet", "strict": True}
    rule = LocalRuleConformance.test_says_something
    assert not [mark for mark in getattr(rule, "pytestmark", []) if mark.name == "xfail"]


def test_fakes_load_without_the_test_tools():
    """An application that imports `narrowgate.testing` loads neither pytest nor hypothesis; nor does narrowgate itself."""
    code = "import sys, narrowgate, narrowgate.testing as t; t.builder; print({'pytest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_a_missing_test_tool_is_named_with_its_cure(tmp_path):
    """Without pytest or hypothesis the conformance classes say what to install."""
    (tmp_path / "hypothesis.py").write_text("raise ModuleNotFoundError('gone', name='hypothesis')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from narrowgate.testing import Conformance"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "the conformance classes need hypothesis: pip install 'narrowgate[testing]'" in done.stderr
