"""The RPC of the trace processor, and how a trace is loaded over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perfetto.trace_processor import TraceProcessor, TraceProcessorException
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

from .errors import DAMAGED, EngineError, OutOfMemory
from .processor import Engine
from .trace_file import TraceFile


class RpcBackend(TraceProcessorRpc):
    """All methods of the byte-stream RPC over any transport.

    The class of the package `perfetto` has only `execute_query`. Unlike its HTTP endpoints, this
    RPC reports an error at the end of the trace.
    """

    def __init__(self, transport: Any, protos: ProtoFactory) -> None:
        super().__init__(transport, protos)
        self._packages: dict[str, dict[str, str]] = {}

    def request(self, method: str, **fields: Any) -> Any:
        """Sends one `TPM_` request and returns its reply."""
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        # `seq` stays unset, so that several clients can share an engine.
        message.request = getattr(self.protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            if isinstance(value, bytes):
                setattr(message, name, value)
            else:
                getattr(message, name).CopyFrom(value)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.ParseFromString(self._read_payload())
        self._check_envelope(reply)
        return reply

    def register_package(self, namespace: str, modules: dict[str, str]) -> None:
        """Registers modules. Modules of an earlier call stay, unless they have the same name."""
        # Before v54 the first part of the module names is the package. A second package under
        # `dev` must therefore be registered together with the first one.
        package = namespace.partition(".")[0]
        earlier = self._packages.get(package, {})
        args = self.protos.TraceProcessorRpc().register_sql_package_args
        args.package_name = package
        args.allow_override = bool(earlier)
        for name, sql in (earlier | modules).items():
            args.modules.add(name=name, sql=sql)
        reply = self.request("TPM_REGISTER_SQL_PACKAGE", register_sql_package_args=args)
        error = reply.register_sql_package_result.error
        if error:
            raise EngineError(
                f"cannot register the SQL package {namespace}: {error.splitlines()[0]}",
                "Give it a namespace of its own, such as dev.example.",
            )
        self._packages[package] = earlier | modules

    def parse(self, chunk: bytes) -> Any:
        return self.request("TPM_APPEND_TRACE_DATA", append_trace_data=chunk).append_result

    def notify_eof(self) -> None:
        error = self.request("TPM_FINALIZE_TRACE_DATA").finalize_data_result.error
        if error:
            raise TraceProcessorException(error)

    def trace_summary(
        self,
        specs: list[str | bytes],
        metric_ids: list[str] | None = None,
        metadata_query_id: str | None = None,
    ) -> Any:
        args = self.protos.TraceSummaryArgs(
            output_format=self.protos.TraceSummaryArgs.Format.BINARY_PROTOBUF,
            textproto_specs=[spec for spec in specs if isinstance(spec, str)],
            proto_specs=[
                self.protos.TraceSummarySpec.FromString(spec)
                for spec in specs
                if isinstance(spec, bytes)
            ],
        )
        if metric_ids is None:
            args.computation_spec.run_all_metrics = True
        else:
            args.computation_spec.metric_ids.extend(metric_ids)
        if metadata_query_id is not None:
            args.computation_spec.metadata_query_id = metadata_query_id
        reply = self.request("TPM_SUMMARIZE_TRACE", trace_summary_args=args)
        return reply.trace_summary_result


def load(
    source: TraceFile,
    modules: Iterable[tuple[str, dict[str, str]]],
    make_backend: Callable[[ProtoFactory], RpcBackend],
    **names: str,
) -> Engine:
    """Creates a TraceProcessor of the package `perfetto` over our backend and loads the trace.

    Raises:
        EngineError: the engine does not start, or the trace cannot be loaded.
    """
    made: list[RpcBackend] = []

    class Processor(TraceProcessor):
        def _create_backend(self, remote: str | None, addr: str | None) -> RpcBackend:
            backend = make_backend(self.protos)
            made.append(backend)
            for name, sql in modules:
                backend.register_package(name, sql)
            return backend

    try:
        processor = Processor(trace=source.chunks())
        engine = Engine(processor, made[0], path=source.path, **names)
    except BaseException as error:
        for backend in made:
            backend.close()
        # Without a backend the engine has failed, not the trace.
        if made and isinstance(error, TraceProcessorException | EngineError):
            raise _load_error(source, error) from (error.__cause__ or error)
        raise
    return engine


def _load_error(source: TraceFile, error: TraceProcessorException | EngineError) -> EngineError:
    if isinstance(error, OutOfMemory):
        return error.with_path(source.path)
    if source.probing:
        return EngineError(f"{source}: the trace ends in the middle of a packet", DAMAGED)
    if isinstance(error, EngineError):
        return error.with_path(source.path)
    message = str(error).removeprefix("Failed while parsing trace. Error message: ")
    if "ERR:fmt" in message:
        return EngineError(
            f"{source}: not a trace in a format that Perfetto reads",
            f"If it is a log, convert it first: syncline convert {source} -o trace.pftrace",
        )
    return EngineError(f"{source}: the trace cannot be loaded: {message}", DAMAGED)
