"""Adds the magics of jupyterlab-jaxprof to every IPython kernel of this environment; imports no JAX."""

try:
    get_ipython().extension_manager.load_extension("jupyterlab_jaxprof")  # noqa: F821
except Exception as _jaxprof_error:  # noqa: BLE001 - never stand in the way of a kernel or of other start-up files
    print(
        f"jupyterlab-jaxprof could not be loaded ({type(_jaxprof_error).__name__}: {_jaxprof_error}); "
        "its magics are missing in this kernel. Reinstalling it may help: pip install --force-reinstall "
        "jupyterlab-jaxprof",
        file=__import__("sys").stderr,
    )
