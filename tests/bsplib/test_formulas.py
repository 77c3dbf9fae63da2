"""Formulas: what is read, what is refused, what it comes to."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.experiments.formula import FormulaError, read_formula
from tests.drawn import examples

FFT = "f[0]+f[1]*log2(P)+f[2]*(N/P)*log2(N/P)+f[3]*N*(P-1)/P"


def test_a_formula_names_its_parameters_and_variables():
    formula = read_formula(FFT)
    assert formula.parameters == ("f[0]", "f[1]", "f[2]", "f[3]")
    assert formula.variables == ("P", "N")


def test_columns_are_what_the_parameters_are_multiplied_by():
    columns, rest = read_formula(FFT).columns({"N": [1024, 4096], "P": [1, 4], "unused": 3})
    assert columns.tolist() == [[1, 0, 1024 * 10, 0], [1, 2, 1024 * 10, 4096 * 3 / 4]]
    assert rest.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "row", "rest"),
    [
        ("A[0] + D[1]*size", [1, 5], 0),
        ("a[0] + 7", [1], 7),
        ("-a[0] + +a[1]", [-1, 1], 0),
        ("a[0] - a[1]*size - 2*size", [1, -5], -10),
        ("(a[0] + a[1]*size)*3 + a[0]", [4, 15], 0),
        ("3*(a[0]/size)", [0.6], 0),
        ("size**2*a[0] + size**-1*a[1]", [25, 0.2], 0),
        ("a[0]*max(size, 7) + a[1]*min(size, 7)", [7, 5], 0),
        ("a[0]*sqrt(size + 4) + a[1]*exp(0) + a[2]*log(1)", [3, 1, 0], 0),
        ("a[0]*ceil(size/2) + a[1]*floor(size/2) + a[2]*abs(-size)", [3, 2, 5], 0),
        ("a[0]*log10(size*20)", [2], 0),
        ("2*a[0]*size*0.5", [5], 0),
        ("  a[0]\t* size ", [5], 0),
    ],
)
def test_a_formula_comes_to(text, row, rest):
    columns, others = read_formula(text).columns({"size": 5})
    assert columns.tolist() == [pytest.approx(row)]
    assert others.tolist() == pytest.approx([rest])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f[0]*f[1]", "f[0] * f[1] is not linear in f[1]"),
        ("N/f[0]", "N / f[0] is not linear in f[0]"),
        ("f[0]**2", "f[0] ** 2 is not linear in f[0]"),
        ("N**f[0]", "N ** f[0] is not linear in f[0]"),
        ("log2(f[0]*N)", "log2(f[0] * N) is not linear in f[0]"),
        ("N + 3", "'N + 3' has no parameter such as f[0]"),
        ("", "'' is not a valid expression"),
        ("f[0] +", "'f[0] +' is not a valid expression"),
        ("f[0]; f[1]", "is not a valid expression"),
        ("f[0]\x00", "is not a valid expression"),
        ("log2(N, 3)*f[0]", "log2 takes 1 argument, not 2"),
        ("f[0]*max(N)", "max takes 2 arguments, not 1"),
        ("f[0]*log2", "'log2' is not allowed; use numbers, variables"),
        ("f[0]*sin(N)", "'sin(N)' is not allowed"),
        ("f[0]*1e999", "'1e309' is not allowed"),
        ("f[0]*" + "9" * 400, "is not allowed"),
        ("f" + "(" * 300 + ")" * 300, ""),
        ("f[0]" + "-" * 90 + "N", "nested more than 50 deep"),
        ("f[0]*" + "N" * 1000, "1005 characters are too many; use 1000"),
    ],
)
def test_what_is_no_sum_of_terms_is_refused(text, words):
    with pytest.raises(FormulaError, match=rf"^formula: .*{re.escape(words)}"):
        read_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "f[0]*().__class__",
        "f[0]*N.real",
        "f[0]*(lambda: 1)()",
        "f[0]*[1, 2][0]",
        "f[0]*(1 if N else 2)",
        "f[0]*f'{N}'",
        "f[0]*'9'",
        "f[0]*True",
        "f[0]*1j",
        "f[0]*(N := 3)",
        "f[0]*open(N)",
        "f[0]*log2(x=N)",
        "f[0]*log2(*N)",
        "f[N]",
        "f[0, 1]",
        "f[0:1]",
        "f['a']",
        "f[0] if N else f[1]",
        "f[0] @ N",
        "f[0] << N",
        "f[0] and N",
        "f[0] < N",
        "f[0] // N",
        "~N*f[0]",
        "f[0]*N()",
    ],
)
def test_nothing_but_arithmetic_is_read(text):
    with pytest.raises(FormulaError):
        read_formula(text)


@examples(150)
@given(st.text(alphabet="fN[]()01.+-*/, log2maxe_'\n", max_size=60))
def test_any_text_is_a_formula_or_an_error_of_one_sentence(text):
    try:
        outcome = read_formula(text).text
    except FormulaError as error:
        outcome = str(error)
    assert outcome == text or outcome.startswith("formula: ")


def test_a_missing_variable_is_named():
    with pytest.raises(FormulaError, match=r"^formula: P has no value; the variables are N, Q$"):
        read_formula("f[0]*N/P").columns({"N": 1, "Q": 2})


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        ("f[0]*log2(N)", {"N": [1, 0]}, r"term of f\[0\] is not finite at N = 0"),
        ("f[0] + f[1]/(N-P)", {"N": [3, 4], "P": 4}, r"term of f\[1\] .* at N = 4, P = 4"),
        ("f[0] + 9**9**N", {"N": 9}, "term of the rest is not finite at N = 9"),
        ("f[0]*sqrt(N)", {"N": -1}, "not finite at N = -1"),
    ],
)
def test_what_is_no_number_is_said_with_its_place(text, values, words):
    with pytest.raises(FormulaError, match=words):
        read_formula(text).columns(values)


def test_a_parameter_that_cancels_out_stays_with_zeros():
    columns, _ = read_formula("f[0] - f[0] + f[1]").columns({})
    assert columns.tolist() == [[0, 1]]
    assert columns.dtype == np.float64
