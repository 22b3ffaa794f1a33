"""Asks JAX programs that run jax.profiler.start_server() for a trace. A script of its own: remote.py starts
it.

It reads one JSON object from standard input, and writes JSON lines to standard output: `{"ready": true}` when
the requests are under way, then one `{"address", "empty"}` or `{"address", "code", "details"}` for each
address.

Why not `python -m jax.collect_profile` or XProf's trace(): both ask each program to write its trace into a
directory of its own file system, which is of use only where that is shared. JAX from 0.9 on sends the trace
back if asked; before, its server hangs whoever asks (seen with 0.6 to 0.8). It is a process of its own so
that gRPC's threads, its memory (the trace, up to 2 GB, some times over) and a request that hangs stay out of
the kernel.
"""

from __future__ import annotations

import json
import queue
import sys
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PROFILE = "/tensorflow.ProfilerService/Profile"
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
]
_Field = descriptor_pb2.FieldDescriptorProto
# The parts used of XLA's profiler_service.proto and profiler_options.proto
# (third_party/tsl/tsl/profiler/protobuf). `xspace` is a message there, read here as the bytes that it is on
# the wire.
_MESSAGES: dict[str, list[tuple[str, int, Any]]] = {
    "ProfileOptions": [
        ("include_dataset_ops", 1, _Field.TYPE_BOOL),
        ("host_tracer_level", 2, _Field.TYPE_UINT32),
        ("device_tracer_level", 3, _Field.TYPE_UINT32),
        ("python_tracer_level", 4, _Field.TYPE_UINT32),
        ("version", 5, _Field.TYPE_UINT32),
        ("enable_hlo_proto", 7, _Field.TYPE_BOOL),
        ("duration_ms", 9, _Field.TYPE_UINT64),
    ],
    "ProfileRequest": [
        ("duration_ms", 1, _Field.TYPE_UINT64),
        ("opts", 4, ".jaxprof.ProfileOptions"),
        ("repository_root", 5, _Field.TYPE_STRING),
        ("session_id", 6, _Field.TYPE_STRING),
        ("host_name", 7, _Field.TYPE_STRING),
        ("emit_xspace", 9, _Field.TYPE_BOOL),
    ],
    "ProfileResponse": [("empty_trace", 7, _Field.TYPE_BOOL), ("xspace", 8, _Field.TYPE_BYTES)],
}


def _message_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="jaxprof/profiler_service.proto", package="jaxprof", syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, kind
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"jaxprof.{name}"))
        for name in _MESSAGES
    }


def main() -> None:
    """Send all requests at once, and report each answer as it comes."""
    order = json.load(sys.stdin)
    classes = _message_classes()
    answers: queue.Queue[tuple[dict[str, str], Any]] = queue.Queue()
    channels: list[Any] = []
    for target in order["targets"]:
        channel = grpc.insecure_channel(target["address"], options=_CHANNEL_OPTIONS)
        channels.append(channel)
        ask = channel.unary_unary(
            _PROFILE,
            request_serializer=classes["ProfileRequest"].SerializeToString,
            response_deserializer=classes["ProfileResponse"].FromString,
        )
        request = classes["ProfileRequest"](
            duration_ms=order["duration_ms"],
            opts=classes["ProfileOptions"](version=1, duration_ms=order["duration_ms"], **order["options"]),
            repository_root=order["repository_root"],
            session_id=order["session"],
            host_name=target["host_name"],
            emit_xspace=True,
        )
        call = ask.future(request, timeout=order["timeout_s"])
        call.add_done_callback(lambda call, target=target: answers.put((target, call)))
    _tell({"ready": True})
    for _ in order["targets"]:
        target, call = answers.get()
        _tell({"address": target["address"], **_result(call, order, target)})
    for channel in channels:
        channel.close()


def _result(call: Any, order: dict[str, Any], target: dict[str, str]) -> dict[str, Any]:
    if call.code() is not grpc.StatusCode.OK:
        return {"code": call.code().name, "details": call.details()}
    response = call.result()
    path = Path(order["repository_root"], order["session"], f"{target['host_name']}.xplane.pb")
    if response.xspace and not response.empty_trace:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(response.xspace)
        except OSError as error:
            return {"code": "LOCAL_WRITE", "details": f"{error.strerror or error}"}
    return {"empty": response.empty_trace}


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
