"""What is known to go wrong with the packages that are installed."""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Check, Found, Problem, note, pip_install, pip_uninstall, problem
from .versions import XPROF_REQUIREMENT, XPROF_SPECIFIERS, XPROF_TESTED, numbers, satisfies

NEEDED = ("jax", "jaxlib", "xprof", "ipython")
#: The newest Python that the tests run with.
_PYTHON_TESTED = (3, 13)
#: Of what shows the labextension: the versions that can.
_FRONT_ENDS = {"jupyterlab": ">=4,<5", "notebook": ">=7,<8"}


def _missing(found: Found) -> Iterator[Problem]:
    for name in NEEDED:
        if found["versions"].get(name) is None:
            wanted = f"'{XPROF_REQUIREMENT}'" if name == "xprof" else name
            what = f"{name} is not installed in this environment."
            yield problem(what, pip_install(wanted, "the kernel"), needed=True)


def _xprof(found: Found) -> Iterator[Problem]:
    xprof = found["versions"].get("xprof")
    if xprof and not satisfies(xprof, XPROF_SPECIFIERS):
        yield problem(
            f"XProf {xprof} is installed; the viewer here is made for {XPROF_TESTED}, whose inner parts it "
            "uses.",
            pip_install(f"'{XPROF_REQUIREMENT}'", "Jupyter"),
            needed=True,
        )


def _requirements(found: Found) -> Iterator[Problem]:
    yield from found.get("conflicts", ())


def _twice(found: Found) -> Iterator[Problem]:
    for name, installed in found.get("duplicates", {}).items():
        (used, place), *others = installed
        hidden = " and ".join(f"{version} in {where}" for version, where in others)
        yield problem(
            f"{name} is installed more than once: {used} in {place}, which is used, and {hidden}.",
            pip_uninstall(
                f"{name}",
                f"install {name} once and restart the kernel",
                first="One of them was left behind by another installer, or lies in the user's own site.",
            ),
        )


def _front_ends(found: Found) -> Iterator[Problem]:
    for name, specifiers in _FRONT_ENDS.items():
        version = found["versions"].get(name)
        if version and not satisfies(version, specifiers):
            yield problem(
                f"{name} {version} can't show the sidebar and the live cards: they are made for "
                f"{name} {specifiers.replace(',', ' and ')}.",
                pip_install(f"--upgrade '{name}{specifiers}'", "Jupyter"),
            )


def _collisions(found: Found) -> Iterator[Problem]:
    have = found["versions"]
    if have.get("xprof") and have.get("tensorboard-plugin-profile"):
        yield problem(
            f"tensorboard-plugin-profile {have['tensorboard-plugin-profile']} is installed beside xprof "
            f"{have['xprof']}, which is its successor: TensorBoard then shows either's tab.",
            pip_uninstall("tensorboard-plugin-profile", "restart Jupyter"),
        )


def _nsight_extension(found: Found) -> Iterator[Problem]:
    version = found["versions"].get("jupyterlab-nvidia-nsight")
    if version:
        yield note(
            "%%nsys",
            f"jupyterlab-nvidia-nsight {version} has a magic of that name too. Where its own is loaded, "
            "%%nsys is NVIDIA's.",
            "Write %%jaxnsys, which is always ours.",
        )


def _python(found: Found) -> Iterator[Problem]:
    if numbers(found.get("python", ""))[:2] > _PYTHON_TESTED:
        tested = ".".join(map(str, _PYTHON_TESTED))
        yield note(
            f"Python {found['python']}",
            f"this version of jupyterlab-jaxprof is tested with Python up to {tested}.",
            pip_install("--upgrade jupyterlab-jaxprof", "the kernel", first="A newer one may know it."),
        )


CHECKS = (
    Check("package-missing", "jax, jaxlib, xprof or ipython is not installed", _missing),
    Check("xprof-version", "a version of xprof that the viewer was not made for", _xprof),
    Check(
        "requirement", "a package whose own requirements are not met: jaxlib, protobuf, ...", _requirements
    ),
    Check("installed-twice", "two versions of one package on the path, where one hides the other", _twice),
    Check("front-end-version", "a JupyterLab before 4 or a Notebook before 7", _front_ends),
    Check("colliding-packages", "tensorboard-plugin-profile beside its successor xprof", _collisions),
    Check("nsight-extension", "NVIDIA's extension, whose %%nsys is another", _nsight_extension),
    Check("python-untested", "a Python newer than the tests know", _python),
)
