"""Which notebook a cell belongs to."""

from __future__ import annotations

from jupyterlab_jaxprof.cell import notebook_name


def test_the_name_is_the_one_that_the_front_end_tells(shell, monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert notebook_name() == ""
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/user/train.ipynb")
    assert notebook_name() == "/home/user/train.ipynb"
    shell.names["__vsc_ipynb_file__"] = "/home/user/in VS Code.ipynb"  # its kernels may have both
    assert notebook_name() == "/home/user/in VS Code.ipynb"
    shell.names["__vsc_ipynb_file__"] = ""
    assert notebook_name() == "/home/user/train.ipynb"


def test_outside_ipython_the_environment_tells(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    assert notebook_name() == "train.ipynb"
