"""Where configuration is found, and what the environment changes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.config import load_config
from hookloop.config_file import line_of
from hookloop_hookspecs import ConfigError


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    put(tmp_path, "hookloop.toml", 'model = "a:far"')
    near = put(tmp_path / "x", "hookloop.toml", 'model = "a:near"')
    below = tmp_path / "x" / "y" / "z"
    below.mkdir(parents=True)
    config = load_config(None, {}, start=below)
    assert (config.model, config.path) == ("a:near", near)


def test_pyproject_counts_only_with_its_table(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", '[project]\nname = "x"\n\n[tool.hookloop]\nmodel = "a:b"\nlimits.rounds = 3\n')
    put(tmp_path / "inner", "pyproject.toml", '[project]\nname = "y"\n')
    config = load_config(None, {}, start=tmp_path / "inner")
    assert (config.model, config.limits.rounds) == ("a:b", 3)
    assert config.where("limits", "rounds").endswith("pyproject.toml:6")


@pytest.mark.parametrize(
    "text",
    [
        b"# tool.hookloop is set above\n[project]\nname = 'x'\n",
        b"[tool.hookloop-web]\nx = 1\n",
        b"[tool]\nother = { hookloop = 1 }\n",
        b"tool = 3\n",
        b"[project]\nauthor = 'M\xfcller'\n",
        b"[project\n# [tool.hookloop]\n",
        b"[project]\nname = x y\n[tool.hookloop-web]\n",
    ],
)
def test_a_project_that_is_not_ours_is_passed_over(tmp_path: Path, text: bytes) -> None:
    put(tmp_path, "hookloop.toml", "limits.rounds = 3\n")
    put(tmp_path / "inner", "pyproject.toml", "").write_bytes(text)
    assert load_config(None, {}, start=tmp_path / "inner").limits.rounds == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[tool]\nhookloop.limits.rounds = 3\n", 2),
        ('[tool."hookloop".limits]\nrounds = 3\n', 2),
        ("tool.hookloop.limits.rounds = 3\n", 1),
        ("[tool]\nhookloop = { limits = { rounds = 3 } }\n", 2),
        ("\ufeff[ tool . hookloop.limits ]\nrounds = 3\n", 2),
    ],
)
def test_our_table_in_a_project_may_be_written_in_any_way(tmp_path: Path, text: str, line: int) -> None:
    put(tmp_path, "hookloop.toml", "limits.rounds = 5\n")
    put(tmp_path / "inner", "pyproject.toml", text)
    config = load_config(None, {}, start=tmp_path / "inner")
    assert config.limits.rounds == 3
    assert config.where("limits", "rounds").endswith(f"pyproject.toml:{line}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[tool.hookloop]\nmodel = 'M\xfcller:m'\n", "cannot be read"),
        (b"[project]\nname = x y\n\n[tool.hookloop.limits]\nrounds = 3\n", "not valid TOML"),
        (b"[tool]\nhookloop = 3\n", r"\[tool.hookloop\] is not a table"),
    ],
)
def test_a_project_that_is_ours_and_cannot_be_read_is_an_error(tmp_path: Path, text: bytes, words: str) -> None:
    put(tmp_path, "hookloop.toml", "limits.rounds = 3\n")
    put(tmp_path / "inner", "pyproject.toml", "").write_bytes(text)
    with pytest.raises(ConfigError, match=rf"pyproject\.toml: .*{words}"):
        load_config(None, {}, start=tmp_path / "inner")


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    file = put(tmp_path, "hookloop.toml", '\ufeffmodel = "a:b"\nlimits.rounds = 3\n')
    config = load_config(file, {})
    assert (config.model, config.where("model")[-2:], config.limits.rounds) == ("a:b", ":1", 3)


def test_a_fault_in_pyproject_is_told_with_its_line(tmp_path: Path) -> None:
    file = put(tmp_path, "pyproject.toml", '[project]\nname = "x"\n\n[tool.hookloop]\nmodle = "a:b"\n')
    with pytest.raises(ConfigError, match=r"pyproject\.toml:5: unknown key 'modle'; did you mean 'model'\?"):
        load_config(file, {})


def test_nothing_found_gives_the_defaults(tmp_path: Path) -> None:
    config = load_config(None, {}, start=tmp_path)
    assert (config.model, config.auto, config.limits.rounds) == ("", False, 100)


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read"):
        load_config(tmp_path / "none.toml", {})


def test_a_variable_may_name_the_file(tmp_path: Path) -> None:
    file = put(tmp_path, "other.toml", 'model = "a:b"')
    assert load_config(None, {"HOOKLOOP_CONFIG": str(file)}, start=tmp_path).model == "a:b"


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = put(tmp_path, "hookloop.toml", 'model = "a:b"\n[limits]\nrounds = 3\n[plugins.prompt-log]\nenabled = true\n')
    environ = {
        "HOOKLOOP_MODEL": "1.5",
        "HOOKLOOP_LIMITS__ROUNDS": "20",
        "HOOKLOOP_LIMITS__PER_TOOL_OVERRIDES__EDIT": "2",
        "HOOKLOOP_AUTO": "true",
        "HOOKLOOP_ORDER": '["b", "a"]',
        "HOOKLOOP_MEMORY": "sqlite:///x.db",
        "HOOKLOOP_PLUGINS__PROMPT_LOG__ENABLED": "false",
        "HOOKLOOP_PORT": "80",
        "PATH": "x",
    }
    config = load_config(file, environ)
    assert (config.model, config.auto, config.order) == ("1.5", True, ["b", "a"])
    assert (config.limits.rounds, config.limits.of_tool("edit")) == (20, 2)
    assert [memory.url for memory in config.memory] == ["sqlite:///x.db"]
    assert {name: table.enabled for name, table in config.plugins.items()} == {"prompt-log": False}
    assert config.where("limits", "rounds") == "environment variable HOOKLOOP_LIMITS__ROUNDS"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("HOOKLOOP_MODLE", "x", "unknown key 'modle'; did you mean 'model'?"),
        ("HOOKLOOP_LIMITS__ROUND", "3", "unknown key 'round' in limits; did you mean 'rounds'?"),
        ("HOOKLOOP_LIMITS__ROUNDS", "many", "limits.rounds: should be a whole number, not 'many'"),
        ("HOOKLOOP_LIMIT__ROUNDS", "3", "unknown key 'limit'; did you mean 'limits'?"),
        ("HOOKLOOP_PLUGINS__A__ENABLE", "true", "unknown key 'enable' in plugins.a; did you mean 'enabled'?"),
        ("HOOKLOOP_SETTINGS__TEMPERATUR", "1", "unknown key 'temperatur' in settings; did you mean 'temperature'?"),
        ("HOOKLOOP_AUTO", "yes", "auto: should be true or false, not 'yes'"),
    ],
)
@pytest.mark.parametrize("text", [None, "[limits]\nrounds = 3\n[plugins.b]\n"])
def test_a_wrong_variable_is_named(tmp_path: Path, name: str, value: str, message: str, text: str | None) -> None:
    if text is not None:
        put(tmp_path, "hookloop.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_config(None, {name: value}, start=tmp_path)
    assert str(caught.value) == f"environment variable {name}: {message}"


def test_a_wrong_table_of_the_file_is_the_files_fault_whatever_variables_add(tmp_path: Path) -> None:
    file = put(tmp_path, "hookloop.toml", "\n[limit]\nrounds = 3\n")
    with pytest.raises(ConfigError, match=r"hookloop\.toml:2: unknown key 'limit'"):
        load_config(file, {"HOOKLOOP_LIMIT__ERRORS": "3"})


def test_memory_urls_take_secrets_from_the_environment(tmp_path: Path) -> None:
    file = put(tmp_path, "hookloop.toml", 'memory = ["postgresql://app:${DB_PASSWORD}@db/chat"]\n')
    assert load_config(file, {"DB_PASSWORD": "s3cret"}).memory[0].url == "postgresql://app:s3cret@db/chat"
    with pytest.raises(
        ConfigError, match=r"hookloop\.toml:1: memory\[0\]: environment variable DB_PASSWORD is not set"
    ):
        load_config(file, {})


TEXT = """# model = "x"
model = "a = b"
limits.rounds = 3
"quoted key"."sub.key" = 1
[plugins.a]   # comment
hooks = { after_tool = false }
text = "=["
[plugins."b.c"]
options.deep.er = 1
[[memory]]
url = "one"
[[memory]]
url = "two"
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("model",), 2),
        (("limits", "rounds"), 3),
        (("limits",), 3),
        (("quoted key", "sub.key"), 4),
        (("plugins", "a"), 5),
        (("plugins", "a", "hooks", "after_tool"), 6),
        (("plugins", "a", "unset"), 5),
        (("plugins", "b.c", "options", "deep", "er"), 9),
        (("plugins",), 5),
        (("memory", 0, "url"), 11),
        (("memory", 1, "url"), 13),
        (("nothing",), None),
    ],
)
def test_the_line_of_a_key_is_found(keys: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, keys) == line
