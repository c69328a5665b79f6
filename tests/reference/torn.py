"""What torn lines leave unknown, as pairing.md specifies.

What they name says what is not known: a torn line concerns the thread, the request and the bio that it
names, and every thread if it does not name its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.reference.thesis import Bio, Event, Pairing, Request


@dataclass
class Task:
    """What a torn line of a thread may have said of what comes next."""

    call: bool = False  # the entry of its next call
    request: bool = False  # the start or the end of the request of its next bio
    pages: bool = False  # a folio of its next bio
    pages_until: int | None = None  # a folio of any bio that it was filling until then


@dataclass
class TornLines:
    pairing: Pairing
    of_unknown: int = 0  # lines that do not name their thread
    seen: dict[int, int] = field(
        default_factory=dict
    )  # by thread: how many of these count for it already
    tasks: dict[int, Task] = field(default_factory=dict)
    addresses: set[int] = field(default_factory=set)
    ids: set[int] = field(default_factory=set)

    def task(self, pid: int) -> Task:
        return self.tasks.setdefault(pid, Task())

    def take(self, event: Event) -> None:
        fields = event.fields
        fact, id_, address, task = fields["fact"], fields["id"], fields["bio"], fields["task"]
        if task is not None:
            self.tear_task(task, fact, event.ts)
        elif not id_ and not address:
            self.of_unknown += 1
            return
        request = self.pairing.find_request(event) if id_ else None
        if request is not None:
            self.tear_request(request, fact)
        if fact not in ("pages", "any"):
            return
        if address:
            for bio in [bio for bio in self.pairing.filling if bio.address == address]:
                self.tear_bio(bio)
            self.addresses.add(address)
        elif task is None:
            self.ids.add(id_)

    def catch_up(self, pid: int, ts: int) -> None:
        """A line without a thread counts for each thread at the next event of that thread."""
        if self.seen.get(pid, 0) != self.of_unknown:
            self.seen[pid] = self.of_unknown
            self.tear_task(pid, "any", ts)

    def tear_task(self, pid: int, fact: str, ts: int) -> None:
        pairing, task = self.pairing, self.task(pid)
        task.call |= fact in ("call", "any")
        task.request |= fact in ("request", "any")
        if fact in ("pages", "any"):
            task.pages, task.pages_until = True, ts
        if task.call and pairing.pid_is_process:
            pairing.guesses[pid].guess()
        elif task.call:
            for request in pairing.requests_in_open_call(pid):
                request.torn = True
            for request in pairing.requests_without_call(pid):
                request.torn = True
                pairing.lose_call(request, None)
        if not pairing.pid_is_process:
            for request in pairing.open_of_thread[pid]:
                self.tear_request(request, fact)

    def tear_request(self, request: Request, fact: str) -> None:
        request.torn = True
        request.lacks_folios |= fact in ("pages", "any")

    def tear_bio(self, bio: Bio) -> None:
        bio.torn = bio.lacks_folios = True
        if bio.request is not None:
            self.tear_request(bio.request, "pages")

    def new_bio(self, bio: Bio, pid: int) -> None:
        task = self.task(pid)
        is_torn = task.pages or bio.address in self.addresses or bio.id in self.ids
        task.pages = False
        self.addresses.discard(bio.address)
        self.ids.discard(bio.id)
        if is_torn:
            self.tear_bio(bio)
        elif task.request:
            bio.torn = True

    def next_of_bio(self, bio: Bio, pid: int) -> None:
        """A thread adds a folio to a bio, or submits it. It may fill several at a time."""
        task = self.task(pid)
        is_older = task.pages_until is not None and bio.first_event().ts <= task.pages_until
        if task.pages or is_older:
            self.tear_bio(bio)
        task.pages = False

    def call_of(self, request: Request) -> None:
        """A request takes its call. If the entry of a call may be torn, it is not known when it began."""
        pairing = self.pairing
        task = self.tasks[request.pid] = Task(call=self.task(request.pid).call)
        if task.call:
            request.torn = True
            if pairing.sees_calls and not pairing.pid_is_process:
                pairing.lose_call(request, None)

    def end_call(self, pid: int) -> None:
        self.tasks[pid] = Task()
