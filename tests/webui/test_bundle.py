import re

import pytest

from bsplib.webui.page import BundleError, bundle


@pytest.fixture
def modules(tmp_path):
    """Write modules into a folder, and return it."""

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name.replace('_', '-')}.js").write_text(source, encoding="utf-8")
        return tmp_path

    return write


def test_each_module_keeps_its_own_names_and_exports_what_it_says(modules):
    folder = modules(
        main='import {\n  area,\n  Unit as Of,\n} from "./two-words.js";\nshow(area, Of);\n',
        two_words=(
            "const hidden = 3;\nexport function area(x) {\n  return hidden * x;\n}\n"
            "export class Unit {}\n"
        ),
    )
    script = bundle(folder, "main")
    assert script.startswith('"use strict";')
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)
    assert "const module_two_words = (() => {" in script
    assert "return { area, Unit };" in script
    assert "const {\n  area,\n  Unit: Of,\n} = module_two_words;" in script


@pytest.mark.parametrize(
    "line",
    [
        'import "./base.js";',
        'import * as all from "./base.js";',
        "import { a } from './base.js';",
        "export default function f() {}",
        "export let changing = 1;",
        "export { a };",
        '  export const indented = "";',
    ],
)
def test_a_form_that_cannot_be_joined_is_named(modules, line):
    folder = modules(main=f"{line}\n", base="export const a = 1;\n")
    with pytest.raises(BundleError, match=r"main\.js has a line that cannot be joined") as caught:
        bundle(folder, "main")
    assert str(caught.value).endswith(line.strip())
