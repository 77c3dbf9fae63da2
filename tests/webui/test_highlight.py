from bsplib.webui.source import highlight

PROGRAM = '''\
@timed
def f(x, *rest):
    """A text
    of two lines."""
    if x not in [1.5, "é"]:  # why
        return print(f"{x!r}")

'''


def text(pieces):
    return "".join(piece if isinstance(piece, str) else piece[1] for piece in pieces)


def roles(pieces):
    return {piece[1]: piece[0] for piece in pieces if not isinstance(piece, str)}


def test_the_pieces_of_each_line_are_the_line():
    lines = PROGRAM.split("\n")
    assert [text(pieces) for pieces in highlight(lines)] == lines


def test_a_word_has_the_role_that_python_gives_it():
    lines = highlight(PROGRAM.split("\n"))
    assert roles(lines[0]) == {"@timed": "decorator"}
    assert roles(lines[1]) == {"def": "keyword", "f": "function"}
    assert roles(lines[2]) == {'"""A text': "string"}
    assert roles(lines[3]) == {'    of two lines."""': "string"}
    assert roles(lines[4]) == {
        "if": "keyword",
        "not": "keyword",
        "in": "keyword",
        "1.5": "number",
        '"é"': "string",
        "# why": "comment",
    }
    assert roles(lines[5])["print"] == "builtin"
