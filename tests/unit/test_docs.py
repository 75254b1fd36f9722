"""What the documentation says is there, and what is there is documented."""

import ast
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import py_memory
from py_memory import (
    arbitration,
    browser,
    entities,
    forgetting,
    listing,
    portable,
    recalling,
    records,
    remembering,
    scoping,
)
from py_memory import errors as error_module
from py_memory import sessions as sessions_module
from py_memory.memory import Memory
from py_memory.session import Session
from py_memory.settings import Settings
from tools import dist as dist_tool
from tools.environment import find_tool
from tools.project import Project

pytestmark = pytest.mark.cpython_only

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.glob("*.md")])
CODE = re.compile(r"`+([^`\n]+)`+")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
TYPES = (ROOT / "web" / "memory.d.ts").read_text(encoding="utf-8")

FILTERS = scoping.FILTERS
OPTIONS = {
    "start_session": sessions_module.OPTIONS | {"user_id"},
    "remember": remembering.OPTIONS | {"content"},
    "An intent": remembering._INTENT_OPTIONS,
    "recall": recalling.RECALL_OPTIONS | {"query"},
    "search": recalling.SEARCH_OPTIONS | {"user_id", "query"},
    "find": listing.FIND_OPTIONS | {"user_id"},
    "timeline": listing.TIMELINE_OPTIONS | {"user_id"},
    "forget": forgetting.OPTIONS | {"user_id"},
    "restore": forgetting.OPTIONS | {"user_id"},
    "trash": {"user_id", "limit", "cursor"},
}


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def words(markdown: str) -> set[str]:
    """Return everything that stands in code marks, whole and by its identifiers."""
    marked = CODE.findall(FENCE.sub("", markdown))
    return {*marked, *(word for one in marked for word in re.findall(r"[\w$]+", one))}


def section(markdown: str, title: str) -> str:
    """Return what stands under a heading, up to the next of the same or a higher level."""
    for found in HEADING.finditer(FENCE.sub(lambda fence: " " * len(fence[0]), markdown)):
        if found[2].replace("`", "") == title:
            rest = markdown[found.end() :]
            end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
            return rest[: end.start()] if end else rest
    raise AssertionError(f"there is no section {title!r}")


def first_cells(markdown: str) -> list[str]:
    """Return the words in code marks of the first column of all tables."""
    cells = [line.split("|")[1] for line in markdown.splitlines() if line.startswith("| `")]
    return [word for cell in cells for word in CODE.findall(cell)]


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower())
    return kept.strip().replace(" ", "-")


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def verbs(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


# ---- Names ----


def test_every_public_name_is_documented():
    known = words(text("reference.md"))
    missing = [name for name in py_memory.__all__ if name not in known]
    assert missing == []


def test_every_public_name_of_the_browser_package_is_documented():
    known = words(text("python.md"))
    missing = [name for name in browser.__all__ if name not in known]
    assert missing == []


@pytest.mark.parametrize("kind", [Memory, Session])
def test_every_verb_and_property_is_documented(kind: type):
    known = words(text("reference.md"))
    missing = [name for name in verbs(kind) if name not in known]
    assert missing == []


def test_every_verb_has_a_section_of_its_own():
    reference = text("reference.md")
    callables = {
        name
        for kind in (Memory, Session)
        for name in verbs(kind)
        if not isinstance(vars(kind)[name], property)
    }
    assert callables >= {"open", "remember", "recall", "forget", "export_json", "end"}
    for name in sorted(callables):
        assert section(reference, name).strip(), name


def documented_options(part: str) -> set[str]:
    options = set(first_cells(part.split("\n| operator ", maxsplit=1)[0]))
    if "(#filters)" in part:
        options |= FILTERS
        options -= set(re.findall(r"\(#filters\) but not `(\w+)`", part))
    return options


@pytest.mark.parametrize("verb", OPTIONS)
def test_the_options_of_a_verb_are_those_that_are_documented(verb: str):
    assert documented_options(section(text("reference.md"), verb)) == set(OPTIONS[verb])


@pytest.mark.parametrize(
    "verb",
    [
        Memory.open,
        Memory.session,
        Memory.export_json,
        Memory.import_json,
        Memory.export_image,
        Memory.import_image,
        Memory.metrics,
        Memory.check,
        Memory.reindex,
        Session.remember_many,
        Session.end,
    ],
    ids=lambda verb: verb.__name__,
)
def test_the_parameters_of_a_verb_are_those_that_are_documented(verb):
    taken = [name for name in inspect.signature(verb).parameters if name != "self"]
    assert documented_options(section(text("reference.md"), verb.__name__)) == set(taken)


def test_the_options_in_the_docstrings_are_documented():
    for kind in (Memory, Session):
        for name in verbs(kind):
            found = re.search(
                r"(?:Options|Selector): (.*?)(?:\n\n|\Z)", vars(kind)[name].__doc__ or "", re.DOTALL
            )
            if found is None:
                continue
            given = re.sub(r"\([^)]*\)|`[^`]*`", "", found[1].split(". ")[0])
            options = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b(?:limit|since|until|ids|query)\b", given))
            assert options <= documented_options(section(text("reference.md"), name)), name
            assert options, name


def test_the_filters_are_those_that_are_documented():
    assert set(first_cells(section(text("reference.md"), "Filters"))) == set(FILTERS)


def test_the_settings_and_their_defaults_are_those_that_are_documented():
    rows = re.findall(r"^\| `(\w+)` \| ([\d,.]+) \|", section(text("reference.md"), "Settings"), re.MULTILINE)
    documented = {name: float(value.replace(",", "")) for name, value in rows}
    defaults = Settings()
    assert documented == {name: getattr(defaults, name) for name in Settings.__dataclass_fields__}


def test_outcomes_roles_types_scopes_tiers_and_operators_are_documented():
    known = words(text("reference.md"))
    kinds = {*remembering.ROLES, *remembering.TYPES, *remembering.SCOPES, *recalling.TIERS}
    outcomes = {"created", "unchanged", "replaced", "updated", arbitration.REJECTED}
    operators = set(entities._OPERATORS)
    assert sorted((kinds | outcomes | operators) - known) == []


def test_the_fields_of_a_hit_are_documented():
    rows = first_cells(section(text("reference.md"), "Hit"))
    assert set(rows) == set(records.Hit.__dataclass_fields__)


def test_what_is_in_why_is_documented():
    with Memory.open(":memory:") as memory:
        session = memory.start_session("u_1")
        session.remember("Which seat?", state={"step": 1})
        session.remember("The window seat.", state={"step": 1})
        whys = [hit.why for hit in session.recall("window seat", state={"step": 1})]
    part = section(text("recall.md"), "What is in why?")
    known = words(part)
    assert set(first_cells(part)) == set(whys[0])
    nested = {name for why in whys for field in ("signals", "memory", "provenance") for name in why[field]}
    assert {"bm25", "question", "memory_score", "speaker"} <= nested
    assert sorted(nested - known) == []


# ---- JavaScript ----


def exports() -> list[str]:
    return re.findall(
        r"^export (?:declare )?(?:type|interface|class|function|const) (\w+)", TYPES, re.MULTILINE
    )


def members(interface: str) -> set[str]:
    """Return the property names of an interface of memory.d.ts, inherited ones included."""
    found = re.search(
        rf"^export interface {interface}(?: extends ([\w, ]+))? \{{\n(.*?)^\}}",
        TYPES,
        re.MULTILINE | re.DOTALL,
    )
    assert found, interface
    plain = re.sub(r"/\*.*?\*/", "", found[2], flags=re.DOTALL)
    own = set(re.findall(r"^\s+(?:readonly )?(\w+)\??:", plain, re.MULTILINE))
    return own.union(*(members(parent.strip()) for parent in (found[1] or "").split(",") if parent.strip()))


def test_every_export_of_the_types_is_documented():
    part = section(text("reference.md"), "Only in JavaScript")
    assert len(exports()) > 40
    assert sorted(set(exports()) - words(part)) == []


def test_what_openmemory_takes_and_tells_is_documented():
    part = section(text("reference.md"), "Only in JavaScript")
    assert set(first_cells(section(part, "openMemory"))) == members("OpenOptions")
    assert set(first_cells(section(part, "memory.storage"))) == members("StorageState")
    assert set(first_cells(section(part, "memory.on"))) == members("MemoryEvents")
    stages = re.search(r"export type Stage = ([^;]+);", TYPES)
    assert stages
    assert set(re.findall(r'"(\w+)"', stages[1])) <= words(part)


@pytest.mark.parametrize(
    ("interface", "verb", "only_there"),
    [
        ("SessionOptions", "start_session", set()),
        ("RememberOptions", "remember", {"content"}),
        ("IntentInput", "An intent", set()),
        ("RecallOptions", "recall", {"query"}),
        ("SearchOptions", "search", set()),
        ("FindOptions", "find", set()),
        ("TimelineOptions", "timeline", set()),
        ("Selector", "forget", set()),
        ("TrashOptions", "trash", set()),
    ],
)
def test_javascript_takes_the_same_options(interface: str, verb: str, only_there: set[str]):
    python = {camel(name) for name in set(OPTIONS[verb]) - only_there}
    assert members(interface) - members("CallOptions") == python


def test_javascript_has_the_same_settings():
    assert members("Settings") == {camel(name) for name in Settings.__dataclass_fields__}


# ---- Errors ----


def test_every_code_is_documented_with_its_class_and_what_to_do():
    part = section(text("errors.md"), "All codes")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in part.splitlines()
        if line.startswith("| `")
    ]
    documented = {CODE.findall(code)[0]: CODE.findall(names)[0] for code, names, _, _ in rows}
    assert documented == {code: kind.__name__ for code, kind in error_module.BY_CODE.items()}
    assert all(meaning.endswith(".") and advice.endswith(".") for _, _, meaning, advice in rows)


def test_codes_in_the_docs_are_codes():
    for line in text("errors.md").splitlines():
        for code in re.findall(r"code === \"(\w+)\"", line):
            assert code in error_module.BY_CODE


def test_reserved_codes_are_raised_nowhere_and_all_others_are():
    reserved = words(section(text("errors.md"), "Codes that are reserved"))
    sources = [*(ROOT / "py_memory").rglob("*.py"), *(ROOT / "web").glob("*.js")]
    everything = "\n".join(
        path.read_text(encoding="utf-8") for path in sources if path.name not in {"errors.py", "errors.js"}
    )
    made = {
        code
        for code, kind in error_module.BY_CODE.items()
        if re.search(rf'\b{kind.__name__}[(,]|"{code}"', everything)
    }
    assert reserved == set(error_module.BY_CODE) - made


def test_the_stages_of_opening_are_explained():
    part = section(text("errors.md"), "When opening fails")
    stages = re.search(r"export type Stage = ([^;]+);", TYPES)
    assert stages
    assert set(first_cells(part)) == set(re.findall(r'"(\w+)"', stages[1])) - {"ready"}


# ---- Files ----


def test_every_table_is_classified():
    with Memory.open(":memory:") as memory:
        tables = {
            row[0] for row in memory.database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    part = section(text("export-format.md"), "Which tables are there, and which are in the JSON file?")
    rows = re.findall(r"^\| (`.+?) \| (exported|rebuilt|skipped) \|", part, re.MULTILINE)
    classes = {name: kind for names, kind in rows for name in CODE.findall(names)}
    assert set(classes) == tables
    exported = {name for name, kind in classes.items() if kind == "exported"}
    assert exported == {"users", "sessions", "fragments", "intents"}


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("users", portable.USER_COLUMNS),
        ("sessions", portable.SESSION_COLUMNS),
        ("fragments", records.FRAGMENT_COLUMNS),
        ("intents", records.INTENT_COLUMNS),
    ],
)
def test_every_field_of_the_json_file_is_documented(table: str, columns: str):
    part = section(section(text("export-format.md"), "The JSON file"), table)
    assert set(first_cells(part)) == {name.strip() for name in columns.split(",")}


@pytest.mark.parametrize("table", ["users", "sessions", "fragments", "intents"])
def test_every_column_that_is_not_exported_is_named(table: str):
    with Memory.open(":memory:") as memory:
        columns = {row[1] for row in memory.database.rows(f"PRAGMA table_info({table})")}
    page = text("export-format.md")
    fields = set(first_cells(section(section(page, "The JSON file"), table)))
    assert sorted(columns - fields - words(section(page, "The SQLite file"))) == []


# ---- Modules ----


def test_every_module_has_its_place_in_the_architecture():
    known = words(text("architecture.md"))
    modules = {path.stem for path in (ROOT / "py_memory").rglob("*.py")} - {"__init__"}
    scripts = {path.name for path in (ROOT / "web").glob("*.*") if path.suffix in {".js", ".ts"}}
    assert sorted((modules | scripts) - known) == []


# ---- Examples ----


def blocks(language: str, *pages: Path) -> Iterator[tuple[Path, int, str]]:
    for page in pages:
        content = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(content):
            if found[1] == language:
                yield page, content[: found.start()].count("\n") + 2, found[2]


def shown(code: str) -> str:
    """Turn `expression  # -> value` into an assertion."""
    return re.sub(
        r"^(\s*)(.+?)  # -> (.+)$",
        lambda line: f"{line[1]}assert ({line[2]}) == ({line[3]}), ({line[2]})",
        code,
        flags=re.MULTILINE,
    )


def in_browser(code: str) -> bool:
    return re.search(r"^\s*(?:\w+ = )?await ", code, re.MULTILINE) is not None


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "python.md"], ids=lambda page: page.name)
def test_the_python_examples_run_and_give_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    run = 0
    for _, line, code in blocks("python", page):
        if in_browser(code):
            compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            continue
        exec(compile("\n" * (line - 1) + shown(code), str(page), "exec"), namespace)
        run += 1
    assert run >= 1


def test_an_example_that_lies_fails():
    with pytest.raises(AssertionError):
        exec(shown("1 + 1  # -> 3"), {})


def test_the_javascript_examples_can_be_parsed(tmp_path: Path):
    node = find_tool("node", "get Node.js 20 or newer from nodejs.org")
    found = list(blocks("js", *PAGES))
    assert len(found) > 5
    for number, (page, line, code) in enumerate(found):
        file = tmp_path / f"{page.stem}-{line}-{number}.mjs"
        file.write_text(code, encoding="utf-8")
        checked = subprocess.run([node, "--check", str(file)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{page.name}:{line}: {checked.stderr}"


def test_the_readme_embeds_it_in_six_lines():
    _, _, code = next(blocks("js", ROOT / "README.md"))
    assert len([line for line in code.splitlines() if line.strip()]) == 6


# ---- Links, tests and figures ----


def test_every_test_that_the_docs_name_exists():
    everything = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = {word for page in PAGES for word in re.findall(r"\btest_\w+", page.read_text(encoding="utf-8"))}
    files = {path.stem for path in (ROOT / "tests").rglob("*.py")}
    missing = [name for name in named if name not in files and f"def {name}(" not in everything]
    assert sorted(missing) == []
    assert len(named) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_resolves(page: Path):
    content = FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", content):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (
            anchor
            and anchor
            not in {
                slug(title) for _, title in HEADING.findall(FENCE.sub("", file.read_text(encoding="utf-8")))
            }
        ):
            broken.append(target)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert linked == {path.name for path in DOCS.glob("*.md")}


def between(name: str) -> str:
    found = re.search(
        rf"<!-- {name}:begin -->\n(.*?)<!-- {name}:end -->",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert found, name
    return found[1]


@pytest.mark.usefixtures("dist")
def test_the_sizes_in_the_readme_are_those_of_dist(project: Project):
    ours, theirs = [0, 0, 0], [0, 0, 0]
    for line in dist_tool.size_report(project).splitlines():
        name, *sizes = line.split()
        if not name.startswith("py-memory/") or name in {
            f"py-memory/{project.wheel_name}",
            "py-memory/memory.d.ts",
        }:
            continue
        pyodide = name.startswith("py-memory/runtime/py") and not name.endswith((".whl", ".json"))
        total = theirs if pyodide else ours
        for column, size in enumerate(sizes):
            total[column] += int(size.replace(",", ""))
    rows = re.findall(
        r"^\| .+ \| ([\d.]+) MB \| ([\d.]+) MB \| ([\d.]+) MB \|$", between("sizes"), re.MULTILINE
    )
    measured = [[size / 1e6 for size in total] for total in (theirs, ours)]
    assert len(rows) == 2
    for row, real in zip(rows, measured, strict=True):
        assert [float(size) for size in row] == pytest.approx(real, rel=0.1), f"measured: {measured}"


def test_the_figures_in_the_readme_are_those_that_were_measured():
    figures = [line for line in between("figures").splitlines() if line.startswith("| ")][1:]
    if not (DOCS / "benchmarks.md").exists():
        assert not figures, "a figure that nobody measured"
        return
    measured = text("benchmarks.md").splitlines()
    assert figures, (
        "docs/benchmarks.md has figures: copy the rows on boot, remember and recall into README.md"
    )
    assert [row for row in figures if row not in measured] == []
