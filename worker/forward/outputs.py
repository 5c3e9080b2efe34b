"""Upload of an ended job's files: each is brought to the store, or stays on the node and is listed.

What is beyond the `OutputLimits`, or would fill the service's disk, is moved to `worker.attempts.kept`: nothing waits
for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.quantities import format_size
from worker.attempts import tree
from worker.attempts.kept import KeptFiles
from worker.attempts.tree import BaselineManifest, JobFile, Key
from worker.background import Spawn
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward import reports
from worker.forward.blobs import BlobSender
from worker.forward.growing import Growing
from worker.forward.written import BAD_FILE, OutputLimits, WrittenFiles, is_lost, is_work

ROUNDS: Final = 4
#: Bytes of a manifest that is read while others wait: a hundred files.
SMALL: Final = 20_000
#: How long the end waits at a time for what goes on in the background.
IDLE_S: Final = 0.2


class OutputSink(Protocol):
    """Service that takes reports of files."""

    def outputs(self, attempt: AttemptId, report: wire.OutputReport) -> wire.Missing: ...


@dataclass(kw_only=True)
class UploadPlan:
    """The files of an attempt, by where they go."""

    stored: dict[Key, tuple[JobFile, str]] = field(default_factory=dict)
    on_node: dict[Key, JobFile] = field(default_factory=dict)
    deleted: list[wire.Place] = field(default_factory=list)
    #: The program has got further than the files that it began with.
    saved: bool = False

    def leave(self, sha256: str) -> None:
        """The files of this content stay on the node."""
        for key in [key for key, (_, same) in self.stored.items() if same == sha256]:
            self.on_node[key] = self.stored.pop(key)[0]


class OutputForwarder:
    """The files of one attempt. `spawn` runs a function in the background."""

    def __init__(
        self,
        sink: OutputSink,
        blobs: BlobSender,
        attempt: AttemptId,
        folder: Path,
        *,
        owner: int,
        kept: KeptFiles,
        limits: OutputLimits,
        spawn: Spawn,
    ) -> None:
        self._sink = sink
        self._attempt = attempt
        self._folder = folder
        self._owner = owner
        self._kept = kept
        self._limits = limits
        self._written = WrittenFiles(folder=folder, owner=owner, blobs=blobs)
        #: For while the job runs.
        self.growing = Growing(self._written, self._report, limits, spawn)
        self._plan: UploadPlan | None = None
        #: What the owner of the job should know; goes to the launcher's log.
        self.notes: list[str] = []

    def pump(self) -> bool:
        """Report and store what there is; nobody writes any more. False once all is stored, or kept here."""
        if not self.growing.rest(IDLE_S):
            return True
        if self._plan is None:
            self._plan = self._look()
        for _ in range(ROUNDS):
            missing = self._tell(self._plan)
            if not missing:
                self._keep(self._plan)
                return False
            self._bring(self._plan, missing)
        raise UnavailableError("the store still lacks files that it was sent")

    def has_nothing(self) -> bool:
        """Return whether a quick look shows that `pump` would have nothing to do."""
        try:
            return self._is_small() and self._has_nothing()
        except OSError:
            return False

    def _is_small(self) -> bool:
        return (self._folder / tree.MANIFEST).stat().st_size <= SMALL

    def _has_nothing(self) -> bool:
        if self.growing.sent or not self.growing.rest(0):
            return False
        manifest = tree.read(self._folder)
        if manifest is None or manifest.live:
            return False
        walk, found = tree.Walk(self._folder, self._owner, manifest), set[Key]()
        for each in walk.files():
            if not manifest.is_untouched(each):
                return False
            found.add(each.key)
        return not walk.passed_over and not self._deleted(manifest, found, walk)

    def _report(self, report: wire.OutputReport) -> wire.Missing:
        return self._sink.outputs(self._attempt, report)

    def _look(self) -> UploadPlan:
        manifest = tree.read(self._folder) if (self._folder / layout.STARTED).exists() else None
        walk = tree.Walk(self._folder, self._owner, manifest)
        found = list(walk.files())
        plan = UploadPlan()
        within, beyond = self._limits.divide([one for one in found if not (manifest and manifest.is_untouched(one))])
        plan.on_node = {each.key: each for each in beyond}
        for each in within:
            self._place(plan, each, manifest)
        if manifest is not None:
            plan.deleted = self._deleted(manifest, {each.key for each in found}, walk)
            plan.saved = any(is_work(each, sha256, manifest) for each, sha256 in plan.stored.values())
        self._note(walk, manifest)
        return plan

    def _place(self, plan: UploadPlan, found: JobFile, manifest: BaselineManifest | None) -> None:
        try:
            sha256 = self._written.hash(found, manifest)
        except OSError as error:
            if not is_lost(error):
                raise
            self.notes.append(f"{found.path!r} is left out: {error}")
            return
        if sha256 is None:  # some other process of the user writes it
            plan.on_node[found.key] = found
        elif manifest is None or manifest.snapshot.get(found.key) != sha256:
            plan.stored[found.key] = (found, sha256)

    def _note(self, walk: tree.Walk, manifest: BaselineManifest | None) -> None:
        if manifest is not None and manifest.live:
            self.notes.append("live: files stay where the job wrote them; the queue keeps TORCHYARD_OUTPUT_DIR alone")
        if walk.passed_over:
            self.notes.append(
                f"{walk.passed_over} files or folders are left out: their names cannot be printed, they belong to "
                "another user, they are mounts, or they lie too deep"
            )

    def _deleted(self, manifest: BaselineManifest, found: set[Key], walk: tree.Walk) -> list[wire.Place]:
        wanted = tree.chooser(manifest.patterns)
        known = set() if manifest.live else manifest.snapshot.keys() | (manifest.carried or {}).keys()
        gone = [key for key in (known | self.growing.sent.keys()) - found if wanted(*key) and not walk.covers(key)]
        places = [wire.Place(root=root, path=path) for root, path in sorted(gone)]
        return [place for place in places if not self._kept.has(self._attempt, place)]

    def _tell(self, plan: UploadPlan) -> set[str]:
        """Report everything; return the hashes that the store lacks."""
        return {sha256 for report in self._reports(plan) for sha256 in self._told(plan, report)}

    def _reports(self, plan: UploadPlan) -> Iterator[wire.OutputReport]:
        for some in reports.pieces(list(plan.stored.values())):
            yield reports.stored(some, saved=plan.saved)
        for gone in reports.pieces(plan.deleted):
            yield wire.OutputReport(files=[], deleted=[*gone])
        for left in reports.pieces(list(plan.on_node.values())):
            yield reports.staying(left, str(self._kept.folder(self._attempt)))

    def _told(self, plan: UploadPlan, report: wire.OutputReport) -> list[str]:
        """Send a report; of one that is refused the halves, down to the file that is the reason."""
        try:
            answer = self._report(report)
        except RequestRefusedError as error:
            if error.status not in BAD_FILE:
                raise
            parts = reports.halved(report)
            if not parts:
                self._leave_unlisted(plan, report, error)
            return [sha256 for part in parts for sha256 in self._told(plan, part)]
        self._written.room = answer.room
        return answer.missing

    def _leave_unlisted(self, plan: UploadPlan, report: wire.OutputReport, error: RequestRefusedError) -> None:
        for key in reports.keys(report):
            if key in plan.stored:
                plan.on_node[key] = plan.stored.pop(key)[0]
            note = f"{key[1]!r} cannot be listed and stays on the node: {error}"
            if note not in self.notes:
                self.notes.append(note)

    def _bring(self, plan: UploadPlan, missing: set[str]) -> None:
        for found, sha256 in list(plan.stored.values()):
            if sha256 in missing:
                missing.discard(sha256)
                if not self._written.send(found, sha256, ended=True):
                    plan.leave(sha256)

    def _keep(self, plan: UploadPlan) -> None:
        if not plan.on_node:
            return
        self._kept.keep(self._attempt, self._folder, self._owner, [each.place for each in plan.on_node.values()])
        size = format_size(sum(each.size for each in plan.on_node.values()))
        count, verb = ("1 file", "is") if len(plan.on_node) == 1 else (f"{len(plan.on_node)} files", "are")
        self.notes.append(
            f"{count} ({size}) {verb} too much for the store, and kept on this node in "
            f"{self._kept.folder(self._attempt)} until `yard pull --kept` brings them or `yard discard` removes them"
        )
