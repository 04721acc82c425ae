"""The messages of pod-resources v1, for the protobuf runtime, without generated code.

Field names and numbers are those of `api.proto` (package `v1`) in Kubernetes' staging repository
`k8s.io/kubelet`. Fields that nobody here reads (CPUs, memory) are left out: the
runtime passes over what it was not told of. grpcio and protobuf are wanted only where there is a
kubelet, so they are imported when the first message is, and nowhere else in the package.
"""

import importlib
import os
from functools import cache
from typing import Any

from seedance_obs.errors import SourceUnavailableError

SERVICE = "v1.PodResourcesLister"

# Per message its fields: number, type, and whether it is repeated. proto3's types in lower case.
_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    "ListPodResourcesRequest": {},
    "ListPodResourcesResponse": {"pod_resources": (1, "PodResources", True)},
    "GetPodResourcesRequest": {
        "pod_name": (1, "string", False),
        "pod_namespace": (2, "string", False),
    },
    "GetPodResourcesResponse": {"pod_resources": (1, "PodResources", False)},
    "AllocatableResourcesRequest": {},
    "AllocatableResourcesResponse": {"devices": (1, "ContainerDevices", True)},
    "PodResources": {
        "name": (1, "string", False),
        "namespace": (2, "string", False),
        "containers": (3, "ContainerResources", True),
    },
    "ContainerResources": {
        "name": (1, "string", False),
        "devices": (2, "ContainerDevices", True),
        "dynamic_resources": (5, "DynamicResource", True),
    },
    "ContainerDevices": {
        "resource_name": (1, "string", False),
        "device_ids": (2, "string", True),
        "topology": (3, "TopologyInfo", False),
    },
    "TopologyInfo": {"nodes": (1, "NUMANode", True)},
    "NUMANode": {"ID": (1, "int64", False)},
    "DynamicResource": {
        "claim_name": (2, "string", False),
        "claim_namespace": (3, "string", False),
        "claim_resources": (4, "ClaimResource", True),
    },
    "ClaimResource": {
        "cdi_devices": (1, "CDIDevice", True),
        "driver_name": (2, "string", False),
        "pool_name": (3, "string", False),
        "device_name": (4, "string", False),
    },
    "CDIDevice": {"name": (1, "string", False)},
}


def grpc_library() -> Any:
    """The module `grpc`, told to keep its own log off standard error.

    Raises:
        SourceUnavailableError: grpcio is not installed; says how to install it.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return _library("grpc")


def message_class(name: str) -> Any:
    """The class of a message by its name in `api.proto`.

    Raises:
        SourceUnavailableError: protobuf is not installed; says how to install it.
    """
    return _message_classes()[name]


def decode(name: str, reply: bytes) -> Any:
    """A reply as a message.

    Raises:
        ValueError: the bytes are no such message.
    """
    message = message_class(name)()
    try:
        message.ParseFromString(reply)
    except _library("google.protobuf.message").DecodeError as error:
        raise ValueError(str(error)) from error
    if reply and not message.ListFields():
        raise ValueError("the reply has fields, and none of them is this message's")
    return message


@cache
def _message_classes() -> dict[str, Any]:
    pool = _library("google.protobuf.descriptor_pool").DescriptorPool()
    pool.Add(_file())
    make = _library("google.protobuf.message_factory").GetMessageClass
    return {name: make(pool.FindMessageTypeByName(f"v1.{name}")) for name in _MESSAGES}


def _file() -> Any:
    descriptors = _library("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    kinds = descriptors.FieldDescriptorProto
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, kind, repeated) in fields.items():
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            if kind.islower():
                field.type = {"string": kinds.TYPE_STRING, "int64": kinds.TYPE_INT64}[kind]
            else:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".v1.{kind}"
    return file


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = "grpcio" if name == "grpc" else "protobuf"
        raise SourceUnavailableError(
            f"asking the kubelet for its pods takes the package {package}, which is not installed "
            "here: pip install 'seedance-obs[kubernetes]'"
        ) from error
