"""The profiler's settings: every value arrives, and what the installed JAX doesn't have is refused."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.tracing import OptionError, profile_options


def test_the_python_tracer_is_off_unless_asked_for():
    assert profile_options({}).python_tracer_level == 0
    assert profile_options({"python_tracer_level": 1}).python_tracer_level == 1


@pytest.mark.parametrize("zero", [0, "0"])
def test_zero_is_a_value(zero):
    options = profile_options({"python_tracer_level": zero, "host_tracer_level": zero})
    assert (options.python_tracer_level, options.host_tracer_level) == (0, 0)


def test_any_field_of_the_installed_jax():
    options = profile_options(
        {"enable_hlo_proto": "no", "host_tracer_level": "3", "advanced_configuration.a": "7"}
    )
    assert options.enable_hlo_proto is False
    assert options.host_tracer_level == 3


@pytest.mark.parametrize(
    ("requested", "sentence"),
    [
        ({"host_level": 1}, "Did you mean host_tracer_level?"),
        ({"nonsense": 1}, "python_tracer_level"),
        ({"device_tracer_level": 0}, "only --remote"),
        ({"session_id": "../../x"}, "the capture's name decides"),
        ({"repository_path": "/"}, "--dir decides"),
        ({"python_tracer_level": "much"}, "a whole number"),
        ({"python_tracer_level": -1}, "a whole number"),
        ({"enable_hlo_proto": "maybe"}, "true or false"),
        ({"advanced_configuration.": 1}, "advanced_configuration.KEY=VALUE"),
        ({"advanced_configuration": 1}, "advanced_configuration.KEY"),
    ],
)
def test_what_cannot_be_set_is_told_in_a_sentence(requested, sentence):
    with pytest.raises(OptionError) as raised:
        profile_options(requested)
    assert sentence in str(raised.value)
