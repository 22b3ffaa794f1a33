"""Arrays that come from an accelerator in parts, as the files that they become."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jupyterlab_jaxprof.nsight.carry import arrays


@pytest.mark.parametrize("shape", [(4096,), (3, 5, 7, 11), (1, 1, 3000), (2, 900), (1000, 1), (129, 3, 2)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.bool_])
def test_parts_make_the_whole(shape, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_is_on_host", lambda array: False)  # an accelerator's memory
    monkeypatch.setattr(arrays, "_PART_BYTES", 1000)
    array = (jnp.arange(np.prod(shape)) % 120).reshape(shape).astype(dtype)
    kept, told = arrays.Arrays(), []
    monkeypatch.setattr(arrays, "IN_PICKLE_BYTES", 0)
    kept.reduce_jax(array)
    kept.write(tmp_path, told.append)
    written = np.load(tmp_path / "arrays" / "0.npy").view(array.dtype)
    assert written.shape == shape
    assert np.array_equal(written, np.asarray(array))
    assert sum(told) == kept.size_bytes == array.nbytes
    assert max(told) <= 1000
