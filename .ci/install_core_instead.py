"""Build backend of the repository's root, which is no package: it says what to install instead."""

from typing import NoReturn


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise SystemExit(
        "This folder is a workshop, not a package. Install the engine with: pip install ./hookspecs ./core"
    )


build_wheel = build_sdist = build_editable = prepare_metadata_for_build_wheel = _refuse
