"""Numbers of call stacks: equal where all calls on the stack stand at the same instructions."""

from __future__ import annotations

import random

import pytest


class Stacks:
    """Numbers stacks in the order in which they are found."""

    def __init__(self, module):
        self.defined = []
        self.keys = module.StackKeys(self.call.__code__, self.define)
        self.number = self.keys.number

    def define(self, frame):
        lines = []
        while frame.f_code is not self.call.__code__:
            lines.append(frame.f_lineno)
            frame = frame.f_back
        self.defined.append(lines)
        return len(self.defined) - 1

    def call(self, function, *args):
        return function(*args)


@pytest.fixture
def stacks(core):
    return Stacks(core("observed"))


def test_code_that_takes_the_place_of_code_that_is_gone_is_a_new_stack(stacks):
    numbers = []
    for _ in range(100):
        namespace = {"number": stacks.number}
        exec("def f():\n    return number()", namespace)
        numbers.append(stacks.call(namespace["f"]))
        namespace.clear()  # otherwise the function and its globals keep each other alive
    assert numbers == [*range(100)]


@pytest.mark.parametrize("depth", [1, 126, 127, 128, 129, 500])
def test_stacks_of_any_depth_are_told_apart(stacks, depth):
    def down(more, bend):
        if more == 0:
            return stacks.number()
        if more == bend:
            return down(more - 1, bend)
        return down(more - 1, bend)

    bends = [0, 1, depth // 2 + 1, depth]
    numbers = [stacks.call(down, depth, bend) for bend in bends * 2]
    assert numbers[:4] == numbers[4:]
    expected = len(set(bends)) if depth > 1 else 2
    assert len(set(numbers)) == expected
    assert {len(lines) for lines in stacks.defined} == {depth + 1}


def test_more_stacks_than_have_a_quick_way_are_told_apart(stacks):
    source = "def main():\n    return [" + "number(), " * 1000 + "]"
    namespace = {"number": stacks.number}
    exec(source, namespace)
    for _ in range(3):
        assert stacks.call(namespace["main"]) == [*range(1000)]


def test_random_walks_over_functions_find_what_the_calls_say(stacks):
    chosen = random.Random(3)
    names = "abcd"
    lines = "\n".join(f"    if choice == {ord(name)}: return {name}(path)" for name in names)
    source = "\n".join(
        f"def {name}(path):\n    if not path: return number()\n    choice = path.pop()\n{lines}"
        for name in names
    )
    namespace = {"number": stacks.number}
    exec(source, namespace)
    found = {}
    for _ in range(3000):
        path = tuple(chosen.choices([*map(ord, names)], k=chosen.randrange(6)))
        number = stacks.call(namespace["a"], [*path])
        assert found.setdefault(path, number) == number
    assert len(set(found.values())) == len(found) == len(stacks.defined)
