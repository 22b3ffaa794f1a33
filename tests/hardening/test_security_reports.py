"""Secrets in Nsight reports: found wherever they stand, removed without a byte moving, and told."""

from __future__ import annotations

import mmap
import os
import random
import shutil
from pathlib import Path

import lz4.block
import pytest

from jupyterlab_jaxprof.environment.secrets import is_secret, is_telling
from jupyterlab_jaxprof.nsight.scrub import scrub
from jupyterlab_jaxprof.nsight.scrub.layout import pieces
from jupyterlab_jaxprof.nsight.scrub.lz4_blocks import packed, plain_of
from jupyterlab_jaxprof.nsight.scrub.texts import Found, blanked
from tests.support.endurance import tries

#: Made by nsys 2025.3, whose packed blocks hold this text of an environment that it had recorded.
REPORT = Path(__file__).parents[1] / "data" / "h200" / "nsys_gpu_bound.nsys-rep"
IN_REPORT = "libcudnn9-headers-cuda-13=9.14.0.64-1"


def text_of(path: Path) -> list[bytes]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as report:
        return [piece.plain for piece in pieces(report)]


def test_a_report_of_a_newer_nsys_keeps_all_but_the_secret(tmp_path):
    path = Path(shutil.copy(REPORT, tmp_path))
    before = text_of(path)
    assert sum(plain.count(IN_REPORT.encode()) for plain in before) > 1
    heard: list[float] = []
    done = scrub(path, {"OWN_TOKEN": IN_REPORT, "OWN_DATA": "NVIDIA H200"}, on_part=heard.append)
    assert done.problem == ""
    assert path.stat().st_size == REPORT.stat().st_size
    blank = b"*" * len(IN_REPORT)
    assert text_of(path) == [plain.replace(IN_REPORT.encode(), blank) for plain in before]
    assert heard == sorted(heard)
    assert heard[-1] <= 1
    assert scrub(path, {}).names == ()


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "no-blocks"])
def test_what_can_not_be_read_is_told_and_left_as_it_is(tmp_path, damage):
    path = tmp_path / "x.nsys-rep"
    content = REPORT.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "text": b"OWN_TOKEN=abc" * 100,
            # The list of sections is whole, and what they hold is not.
            "no-blocks": content[:6019] + bytes(140_000) + content[146_019:],
        }[damage]
    )
    before = path.read_bytes()
    done = scrub(path, {"OWN_TOKEN": IN_REPORT})
    assert done.problem
    assert done.names == ()
    assert path.read_bytes() == before


def test_changed_blocks_take_the_bytes_that_they_took():
    """All but tiny blocks, in which there is hardly a copy to make room with."""
    chance = random.Random(8)
    for _ in range(tries(150, 20_000)):
        words = [chance.randbytes(chance.randint(2, 20)) for _ in range(30)]
        parts = [chance.choice(words) for _ in range(chance.randint(100, 600))]
        secret = bytes(chance.choices(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=chance.randint(1, 80)))
        for _ in range(chance.randint(1, 5)):
            parts.insert(chance.randint(0, len(parts)), b"=" + secret)
        plain = b"".join(parts)
        mode = chance.choice(["fast", "default", "high_compression"])
        block = lz4.block.compress(plain, mode=mode, store_size=False)
        changed = plain.replace(b"=" + secret, b"=" + b"*" * len(secret))
        fitted = packed(changed, len(block))
        assert fitted is not None
        assert len(fitted) == len(block)
        assert plain_of(fitted, len(plain)) == changed
    assert packed(os.urandom(1000), 900) is None


def field(number: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def test_where_secrets_stand():
    """As nsys has them: environments as one text or as texts of their own, tables of them, command lines."""
    environ = b"API_KEY=first-s3cret\0HOME=/home/me\0TOKENIZERS_PARALLELISM=false\0DB_PASSWORD=a=b c"
    plain = field(1, b"\x08\x01" + field(4, environ) + field(5, b"NOTE=x"))
    plain += field(2, field(9, b"MY_TOKEN=own field") + field(9, b"PATH=/bin") + b"\x10\x07")
    plain += field(3, field(1, b"AWS_SECRET_ACCESS_KEY") + field(2, b"in a table"))
    plain += field(6, field(1, b"--api-key") + field(1, b"after it") + field(1, b"--password=equal"))
    plain += field(7, field(1, b"postgres://me:of-1-address@host/db") + field(1, b"see first-s3cret"))
    innocent = field(8, field(1, b"hlo_op=fusion.3,max_tokens=4096") + field(1, b"key of a map = value"))
    found = Found()
    once = blanked(plain + innocent, found)
    assert len(once) == len(plain + innocent)
    for secret in (
        b"first-s3cret",
        b"a=b c",
        b"own field",
        b"in a table",
        b"after it",
        b"equal",
        b"of-1-add",
    ):
        assert secret not in once, secret
    for kept in (b"HOME=/home/me\0", b"=false\0", b"NOTE=x", b"PATH=/bin", b"postgres://me:", b"@host/db"):
        assert kept in once, kept
    assert once.endswith(innocent)
    assert found.names >= {
        "API_KEY",
        "DB_PASSWORD",
        "MY_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "api-key",
        "password",
    }
    assert found.values == {b"first-s3cret", b"of-1-address"}  # the others would hide words of the program
    assert blanked(once, Found()) == once
    assert b"own field" in blanked(plain, Found(), {"MY_TOKEN"})


def test_damaged_texts_end():
    chance = random.Random(9)
    sound = field(1, field(4, b"A_TOKEN=1\0B_TOKEN=2") + field(1, b"--token") + field(1, b"x" * 300))
    for _ in range(tries(300, 50_000)):
        damaged = bytearray(sound * 2)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        assert len(blanked(bytes(damaged), Found())) == len(damaged)


def test_names_and_values_that_tell():
    secret = ["JUPYTER_TOKEN", "JPY_API_TOKEN", "WANDB_API_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD", "DB_PASS"]
    secret += ["--ServerApp.token", "http-cookie", "sentry_dsn"]
    innocent = ["PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "KEYBOARD", "GIT_AUTHOR_NAME"]
    assert [name for name in secret + innocent if is_secret(name)] == secret
    assert is_telling("3f9a1c7e")
    plain = ["false", "1048576", "/home/me/key1.json", "tensorflow", "********", "abc1"]
    assert not any(map(is_telling, plain))
