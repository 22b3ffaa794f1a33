"""What is known to go wrong between Jupyter's server, its page and its kernels: their settings and versions.

Read from the files that Jupyter reads, with nothing of Jupyter's but `jupyter_core` imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from jupyter_core.paths import jupyter_config_path, jupyter_path

from .problem import Check, Found, Problem, export, note, pip_install, problem, run
from .versions import OWN, distributions_in

_MODULE = "jupyterlab_jaxprof"
_STARTUP = "00-jaxprof.py"
_DISABLED = "disabledExtensions"


def facts(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read what Jupyter and IPython find of this package.

    `switch`: whether a server loads the extension (None: nothing says); `labextension`: {path, version} of
    the one that JupyterLab takes, or None; `disabled`: the settings file that disables it, or empty;
    `startup`: whether IPython finds the start-up file, and `startup_file`: where the installation put it, or
    empty; `target`: the directory of a `pip install --target`, or empty; `kernels`: {name, python, version}
    of those of other environments; `server_version`, `base_url`, `hub_prefix`: what the server told this
    kernel, empty where none did; `kernel_of_server`: whether a Jupyter server started it.
    """
    found = _labextension()
    return {
        "switch": _switch(),
        "labextension": found,
        "disabled": _disabled(),
        "startup": _startup_is_found(environ),
        "startup_file": _installed_startup(),
        "target": str(target) if (target := _target()) else "",
        "kernels": list(_other_kernels()),
        "server_version": environ.get("JAXPROF_SERVER_VERSION", ""),
        "base_url": environ.get("JAXPROF_BASE_URL", ""),
        "hub_prefix": environ.get("JUPYTERHUB_SERVICE_PREFIX", ""),
        "kernel_of_server": "JPY_SESSION_NAME" in environ,
    }


def _json(path: Path) -> dict[str, Any]:
    """Read an object; what can't be read says nothing, as to Jupyter."""
    try:
        said: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _part(said: Mapping[str, Any], key: str) -> dict[str, Any]:
    inner = said.get(key)
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}


def _switch() -> bool | None:
    """What the configuration files say, the ones that count for more read later."""
    switch: bool | None = None
    for directory in map(Path, reversed(jupyter_config_path())):
        parts = sorted((directory / "jupyter_server_config.d").glob("*.json"))
        for path in (*parts, directory / "jupyter_server_config.json"):
            said = _part(_part(_json(path), "ServerApp"), "jpserver_extensions").get(_MODULE)
            switch = said if isinstance(said, bool) else switch
    return switch


def _labextension() -> dict[str, str] | None:
    for directory in jupyter_path("labextensions"):
        package = Path(directory) / OWN / "package.json"
        if package.is_file():
            return {"path": str(package.parent), "version": str(_json(package).get("version", ""))}
    return None


def _disabled() -> str:
    """Name the file that disables the labextension, or its parts."""
    places = [Path(directory) / "labconfig" for directory in jupyter_config_path()]
    for place in (*places, Path(sys.prefix) / "share/jupyter/lab/settings"):
        said = _json(place / "page_config.json").get(_DISABLED)
        if isinstance(said, dict):
            said = [name for name, yes in cast("dict[str, Any]", said).items() if yes]
        names = cast("list[object]", said) if isinstance(said, list) else []
        if any(str(name).partition(":")[0] == OWN for name in names):
            return str(place / "page_config.json")
    return ""


def _startup_is_found(environ: Mapping[str, str]) -> bool:
    profile = Path(environ.get("IPYTHONDIR") or "~/.ipython").expanduser() / "profile_default/startup"
    system = (Path(sys.prefix) / "etc/ipython/startup", Path("/usr/local/etc/ipython/startup"))
    return any((place / _STARTUP).is_file() for place in (profile, *system))


def _installed_startup() -> str:
    try:
        files = metadata.files(OWN) or []
    except metadata.PackageNotFoundError:
        return ""
    told = [Path(str(file.locate())).resolve() for file in files if file.name == _STARTUP]
    beside = _target()
    told += [beside / "etc/ipython/startup" / _STARTUP] if beside else []
    return next((str(path) for path in told if path.is_file()), "")


def _target() -> Path | None:
    """Where `pip install --target` put it: all beside the package, whatever the list of files says."""
    place = Path(__file__).resolve().parents[2]
    return place if (place / "share/jupyter/labextensions" / OWN).is_dir() else None


def _other_kernels() -> Iterator[dict[str, Any]]:
    """The Python kernels that Jupyter offers from other virtual environments, and our version in each."""
    names: set[str] = set()
    for directory in jupyter_path("kernels"):
        for path in sorted(Path(directory).glob("*/kernel.json")):
            argv: list[Any] = _json(path).get("argv") or [""]
            python = Path(str(argv[0]))
            prefix = python.parent.parent
            ours = prefix == Path(sys.prefix) or python == Path(sys.executable)
            if path.parent.name in names or ours or not python.is_absolute() or not _is_environment(prefix):
                continue
            names.add(path.parent.name)
            sites = prefix.glob("lib/python3*/site-packages")
            version = next((one for site in sites for one in distributions_in(site).get(OWN, ())), None)
            yield {"name": path.parent.name, "python": str(python), "version": version}


def _is_environment(prefix: Path) -> bool:
    """Whether all that a Python imports lies below its prefix: then what is missing there is missing."""
    settings = prefix / "pyvenv.cfg"
    if (prefix / "conda-meta").is_dir():
        return True
    try:
        return "include-system-site-packages = true" not in settings.read_text()
    except OSError:
        return False


def _jupyter(found: Found) -> Mapping[str, Any]:
    return found.get("jupyter") or {}


def _has_page(found: Found) -> bool:
    """Whether this environment has JupyterLab or Notebook, and this package is installed in it."""
    have = found["versions"]
    return bool(_jupyter(found) and have.get(OWN) and (have.get("jupyterlab") or have.get("notebook")))


def _python(found: Found) -> str:
    return str(found["executable"])


def _server_switch(found: Found) -> Iterator[Problem]:
    if _has_page(found) and not _jupyter(found)["switch"]:
        how = (
            "is disabled in Jupyter's configuration"
            if _jupyter(found)["switch"] is False
            else "is not enabled"
        )
        yield problem(
            f"The server half {how}: JupyterLab shows the sidebar, and finds no captures.",
            run(f"jupyter server extension enable {_MODULE}", "restart Jupyter"),
            needed=True,
        )


def _labextension_missing(found: Found) -> Iterator[Problem]:
    extension, own = _jupyter(found).get("labextension"), found["versions"].get(OWN)
    if not _has_page(found):
        return
    if extension is None and (target := _jupyter(found).get("target")):
        yield problem(
            f"This package was installed into {target} (pip's --target), where Jupyter looks for no "
            "extension.",
            export(f"JUPYTER_PATH='{target}/share/jupyter' JUPYTER_CONFIG_PATH='{target}/etc/jupyter'"),
            needed=True,
        )
    elif extension is None:
        yield problem(
            "JupyterLab finds no labextension of this package where it looks: no sidebar, no live cards.",
            pip_install(f"--force-reinstall --no-deps {OWN}", "Jupyter", _python(found)),
        )
    elif extension["version"] != own:
        yield problem(
            f"JupyterLab takes the labextension of version {extension['version']} from "
            f"{extension['path']}, and the "
            f"package is {own}.",
            run(f"rm -r '{extension['path']}'", f"install {OWN} again", first="It was left by an older one."),
        )


def _labextension_disabled(found: Found) -> Iterator[Problem]:
    if _has_page(found) and _jupyter(found)["disabled"]:
        yield problem(
            f"The labextension, or a part of it, is disabled by {_jupyter(found)['disabled']}.",
            run(f"jupyter labextension enable {OWN}", "reload the page"),
        )


def _startup(found: Found) -> Iterator[Problem]:
    jupyter = _jupyter(found)
    if jupyter and jupyter["startup_file"] and not jupyter["startup"]:
        profile = "~/.ipython/profile_default/startup"
        yield problem(
            f"IPython does not find the start-up file, which pip put at {jupyter['startup_file']}: kernels "
            "have the magics only after %load_ext jupyterlab_jaxprof.",
            run(f"mkdir -p {profile} && cp '{jupyter['startup_file']}' {profile}/", "restart the kernel"),
        )


def _kernels(found: Found) -> Iterator[Problem]:
    own = found["versions"].get(OWN)
    for kernel in _jupyter(found).get("kernels", ()) if own else ():
        if kernel["version"] != own:
            has = f"has version {kernel['version']}" if kernel["version"] else "lacks this package"
            yield note(
                f"the kernel {kernel['name']!r}",
                f"its environment ({kernel['python']}) {has}.",
                pip_install(f"'{OWN}=={own}'", "the kernel", kernel["python"]),
            )


def _server_version(found: Found) -> Iterator[Problem]:
    server, own = _jupyter(found).get("server_version"), found["versions"].get(OWN)
    if server and own and server != own:
        yield problem(
            f"The Jupyter server has jupyterlab-jaxprof {server}, and this kernel's environment {own}.",
            pip_install(f"'{OWN}=={server}'", "the kernel", _python(found)),
        )


def _no_server_half(found: Found) -> Iterator[Problem]:
    jupyter = _jupyter(found)
    if jupyter and jupyter["kernel_of_server"] and not jupyter["base_url"]:
        yield problem(
            "The Jupyter server that started this kernel does not have the server half: captures are kept, "
            "and neither the sidebar nor the XProf tab can show them.",
            run(
                f"pip install {OWN}",
                "restart Jupyter",
                first="The server's environment lacks it, or the server was started before it was installed.",
            ),
        )


def _hub(found: Found) -> Iterator[Problem]:
    jupyter = _jupyter(found)
    base, hub = jupyter.get("base_url", ""), jupyter.get("hub_prefix", "")
    if base and hub and base.rstrip("/") != hub.rstrip("/"):
        yield problem(
            f"The server's address begins with {base}, and JupyterHub sends {hub} to it: links of cards lead "
            "nowhere.",
            run(
                f"jupyterhub-singleuser --ServerApp.base_url={hub}", first="Start the server as the hub does."
            ),
        )


CHECKS = (
    Check("server-extension", "a server half that is disabled, or enabled nowhere", _server_switch),
    Check(
        "labextension", "a labextension that is missing, or an older one in its place", _labextension_missing
    ),
    Check(
        "labextension-disabled", "a labextension that JupyterLab's settings disable", _labextension_disabled
    ),
    Check("startup-file", "a start-up file where IPython does not look (pip --user, --target)", _startup),
    Check(
        "kernel-environment",
        "another environment's kernel without this package, or with another version",
        _kernels,
    ),
    Check("server-version", "a server with another version than the kernel", _server_version),
    Check("no-server-half", "a kernel whose server does not have this package", _no_server_half),
    Check("hub-address", "a base URL that is not the one JupyterHub sends here", _hub),
)
