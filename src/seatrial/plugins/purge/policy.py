"""What may be purged, when, and who is told before: ``purge.yaml`` and the lists of exceptions.

policy = load_policy(Path("purge.yaml"))
policy.file.roots               # ["/scratch"]
policy.exceptions               # the whitelist: of purge.yaml, of its files and of owners
policy.faults_now(time.time(), trials)  # why nothing may be removed now
"""

from __future__ import annotations

import contextlib
import grp
import hashlib
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from seatrial.errors import InvalidFiles, UsageError, suggest
from seatrial.files import origin_by, read_start
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import (
    Duration,
    FileModel,
    Name,
    PartOfAll,
    Quantity,
    Size,
    as_written,
    checked,
    doc,
    from_written,
)
from seatrial.model.moments import day_of, zone_of
from seatrial.plugins.purge.names import (
    Finder,
    Fitting,
    TooMany,
    as_plain,
    check_pattern,
    finds,
    folder_pattern,
    is_literal,
    plain_start,
    shown_name,
)
from seatrial.results import notes
from seatrial.units import (
    FAR_FUTURE_NS,
    SECOND_NS,
    bytes_of,
    count,
    seconds,
    share_of,
)

SHORTEST_AGE = 2 * 86400.0
"""With ``relatime``, the default of Linux, atime may be a day late."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MAX_EXCEPTIONS = 20_000
MAX_OWNED = 200  # lines of the list of one owner
_AHEAD = 400  # days within which a time that is allowed is looked for

# ---- quantities ----------------------------------------------------------------------------------


class Age(Quantity):
    """The time since a file was last used."""

    form = Annotated[int | float | str, doc("seconds, or e.g. 30d")]
    __slots__ = ("seconds",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        if str(written).strip().rstrip("smhd") in ("0", "0.0"):
            raise ValueError(f"{written} would take every file; write e.g. 30d")
        self.seconds = seconds(written)


class Part(Quantity):
    """A part of a file system: a share of its capacity, or bytes."""

    form = Annotated[int | str, doc("20%, or e.g. 50TiB")]
    __slots__ = ("bytes", "share")

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        is_share = isinstance(written, str) and written.strip().endswith("%")
        self.share = share_of(written) if is_share else None
        self.bytes = 0 if is_share else bytes_of(written)
        if self.share is not None and not 0 < self.share <= 1:
            raise ValueError(f"{written} is not a part of the capacity; write e.g. 20%")
        if self.share is None and not self.bytes:
            raise ValueError(f"{written} is nothing to free; write e.g. 20% or 50TiB")

    def of(self, capacity: int) -> int:
        """Return its bytes on a file system of that capacity."""
        return self.bytes if self.share is None else round(self.share * capacity)


class Hours(Quantity):
    """Hours of a day: ``22:00-06:00`` ends on the next day."""

    form = Annotated[str, doc("such as 22:00-06:00, which ends on the next day")]
    __slots__ = ("end", "start")

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        first, _, last = str(written).strip().partition("-")
        try:
            self.start = time.fromisoformat(first.strip().zfill(5))
            self.end = time.fromisoformat(last.strip().zfill(5).replace("24:00", "00:00"))
        except ValueError:
            raise ValueError(f"{written!r} is no hours; write e.g. 22:00-06:00") from None
        if self.start.tzinfo or self.end.tzinfo:
            raise ValueError(f"{written!r} has a time zone; say `time_zone`")


def _check_pattern(text: str) -> None:
    try:
        check_pattern(text)
    except ValueError as error:
        raise ValueError(f"{text[:80]!r} {error}") from None


def _check_folder(text: str) -> None:
    if not text.startswith("/"):
        raise ValueError(f"{text[:80]!r} is no absolute path; write e.g. /scratch/x")
    _check_pattern(folder_pattern(text))


_NEVER_BELOW = (
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
)
_OF_THE_SYSTEM = ("/dev", "/home", "/opt", "/root", "/run", "/var", "/var/lib")


def _check_root(path: str) -> None:
    if not path.startswith("/") or os.path.normpath(path) != path or path.startswith("//"):
        raise ValueError(f"{path[:80]!r} is no plain absolute path; write e.g. /scratch")
    if path == "/":
        raise ValueError("/ is the whole host; name the folders that are purged, such as /scratch")
    if path in _OF_THE_SYSTEM or any(is_below(path, top) for top in _NEVER_BELOW):
        raise ValueError(
            f"{path} is of the system, or has the homes; name the folders that are purged, such as "
            "/scratch"
        )


Pattern = Annotated[str, checked(_check_pattern)]
FolderPattern = Annotated[str, checked(_check_folder)]
Day = Annotated[str, checked(day_of)]
Account = int | str
_Count = Annotated[int, Meta(ge=1)]


# ---- the file ------------------------------------------------------------------------------------


class Sizes(FileModel, frozen=True, rename={"least": "from"}):
    """Sizes of files between bounds."""

    least: Annotated[Size | None, doc("this size or larger")] = None
    above: Annotated[Size | None, doc("larger than this")] = None
    up_to: Annotated[Size | None, doc("this size or smaller")] = None
    below: Annotated[Size | None, doc("smaller than this")] = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest size."""
        least = max(_bytes(self.least, 0), _bytes(self.above, -1) + 1)
        return least, min(_bytes(self.up_to, 1 << 62), _bytes(self.below, 1 << 62) - 1)


def _bytes(size: Size | None, default: int) -> int:
    return default if size is None else size.bytes


class PurgeClass(FileModel, frozen=True):
    """Files with an age of their own. All keys that are given must fit a file."""

    name: Annotated[Name, doc("its name in plans")]
    folders: Annotated[
        list[FolderPattern],
        doc("only below these folders; in patterns * stops at a slash, ** does not"),
    ] = []
    files: Annotated[list[Pattern], doc("only these names or paths, such as '*.core'")] = []
    size: Annotated[Sizes, doc("only these sizes: {above: 1TiB}")] = Sizes()
    users: Annotated[list[Account], doc("only files of these users, by name or uid")] = []
    groups: Annotated[list[Account], doc("only files of these groups, by name or gid")] = []
    age: Annotated[Age | None, doc("the age at which they are taken")] = None
    keep: Annotated[bool, doc("they are never taken")] = False


class WhitelistLine(FileModel, frozen=True, rename={"reason": "why"}):
    """A line of a whitelist: what is never taken, for whom, until when and why."""

    folder: Annotated[
        FolderPattern | None, doc("this folder, or pattern of folders, with all below")
    ] = None
    files: Annotated[Pattern | None, doc("these names, or whole paths: '*.sbatch'")] = None
    owner: Annotated[Account | None, doc("only files of this user")] = None
    until: Annotated[Day | None, doc("its last day; default: for ever")] = None
    who: Annotated[str, doc("who asked for it")] = ""
    reason: Annotated[str, doc("the reason")] = ""

    @property
    def words(self) -> str:
        return str(self.folder or self.files)

    @property
    def pattern(self) -> str:
        """The pattern that is meant, of folders or of files."""
        return folder_pattern(self.folder) if self.folder else str(self.files)


class WhitelistFile(FileModel, frozen=True):
    """A list of exceptions beside a ``purge.yaml``, or that of an owner."""

    whitelist: Annotated[list[WhitelistLine], doc("what is never taken")]


class Owners(FileModel, frozen=True):
    """Whose files are taken."""

    only: Annotated[list[Account], doc("only files of these users, or `only_groups`")] = []
    exempt: Annotated[list[Account], doc("no file of these users")] = []
    only_groups: Annotated[list[Account], doc("only files of these groups, or `only`")] = []
    exempt_groups: Annotated[list[Account], doc("no file of these groups")] = []
    unknown: Annotated[
        Literal["kept", "taken"], doc("files whose uid has no name on this host")
    ] = "kept"


class Caps(FileModel, frozen=True):
    """What a plan takes at most, the oldest files first."""

    files: Annotated[_Count | None, doc("entries; default: no limit")] = None
    bytes: Annotated[Size | None, doc("allocated bytes; default: no limit")] = None
    errors: Annotated[int, doc("entries that could not be removed, before the act ends", ge=1)] = (
        100
    )


class Goal(FileModel, frozen=True):
    """What is to be reached on each file system: the oldest files are taken until it is."""

    free: Annotated[Part | None, doc("free this much: 20% of the capacity, or 50TiB")] = None
    used: Annotated[PartOfAll | None, doc("until at most this share of the capacity is used")] = (
        None
    )
    by: Annotated[Day | None, doc("the day on which it must be reached; shown")] = None


class Warn(FileModel, frozen=True):
    """How owners are told before. A file is taken only if its owner was."""

    before: Annotated[Duration, doc("the least time between the warning and the purge")] = Duration(
        "7d"
    )
    command: Annotated[
        list[str], doc("program that sends a mail from its input: [/usr/sbin/sendmail, -t, -i]")
    ] = []
    sender: Annotated[str, doc("address in `From:`")] = ""
    address: Annotated[str, doc("address of an owner: {user}@example.org, or {user}")] = "{user}"
    nobody: Annotated[
        str, doc("address that is told of files whose uid has no name; default: nobody")
    ] = ""
    text: Annotated[str, doc("sentences at the top of each mail")] = ""
    contact: Annotated[str, doc("whom owners ask, such as help@example.org")] = ""
    lists: Annotated[
        str, doc("folder for the whole list of each owner; default: that of the plan")
    ] = ""
    lines: Annotated[int, doc("files that a mail names itself at most", ge=0, le=10_000)] = 200


class Freeze(FileModel, frozen=True, rename={"start": "from", "end": "to", "reason": "why"}):
    """Days on which nothing is removed, the first and the last one among them."""

    start: Annotated[Day, doc("the first day")]
    end: Annotated[Day, doc("the last day")]
    reason: Annotated[str, doc("the reason")] = ""


class Calendar(FileModel, frozen=True):
    """When files may be removed."""

    days: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]],
        doc("days of the week; hours that pass midnight belong to the day they begin on"),
    ] = []
    hours: Annotated[list[Hours], doc("hours of these days; default: all")] = []
    freezes: Annotated[list[Freeze], doc("days on which nothing is removed")] = []
    machine: Annotated[
        str, doc("machine whose incidents (`seatrial usage incident`) hold a purge back")
    ] = ""


class PurgeFile(FileModel, frozen=True):
    """A ``purge.yaml``."""

    roots: Annotated[
        list[Annotated[str, checked(_check_root)]],
        doc("folders that are purged; other file systems below are not entered"),
    ]
    age: Annotated[
        Age | None,
        doc("age at which files of no class are taken: since atime, mtime and ctime, the latest"),
    ] = None
    short_ages: Annotated[
        Literal["refused", "allowed"], doc("whether ages below 2 d are meant")
    ] = "refused"
    times: Annotated[
        list[Literal["atime", "mtime", "ctime"]],
        doc("the times of which the latest counts; default: all three"),
    ] = []
    future: Annotated[
        Literal["kept", "ignored"],
        doc("times more than a day ahead: the file is kept, or ctime counts in their place"),
    ] = "kept"
    classes: Annotated[list[PurgeClass], doc("files with another age; the first that fits")] = []
    whitelist: Annotated[list[WhitelistLine], doc("what is never taken")] = []
    whitelist_files: Annotated[list[str], doc("further lists: files of the same form")] = []
    owner_lists: Annotated[
        str,
        doc("folder with lists of owners: USER.yaml is of USER's files alone; a faulty one "
            "keeps all of them"),
    ] = ""  # fmt: skip
    owners: Annotated[Owners, doc("whose files are taken; default: everybody's")] = Owners()
    caps: Annotated[Caps, doc("what a plan takes at most")] = Caps()
    goal: Annotated[Goal | None, doc("take only as much as is needed")] = None
    reformat: Annotated[
        Day | None,
        doc("the day on which the roots are made anew: all files are listed, and none is taken"),
    ] = None
    warn: Annotated[Warn | None, doc("owners are warned first; default: they are not")] = None
    calendar: Annotated[Calendar, doc("when files may be removed; default: always")] = Calendar()
    aside: Annotated[
        Duration | None,
        doc("how long files are kept aside, from where they can come back; default: not"),
    ] = None
    empty_folders: Annotated[bool, doc("also remove folders that the purge left empty")] = False
    folder_depth: Annotated[
        int, doc("folders of fewer levels below a root are never removed", ge=1)
    ] = 2
    open_files: Annotated[
        Literal["skip", "remove"], doc("files that a process of this host has open")
    ] = "skip"
    consents: Annotated[int, doc("names that must consent to a purge: `--consent`", ge=1)] = 1
    time_zone: Annotated[
        str,
        checked(zone_of),
        doc("of days and hours, such as Europe/Berlin; default: that of the host"),
    ] = ""

    @property
    def clocks(self) -> tuple[str, ...]:
        """The times of which the latest counts."""
        return tuple(self.times) or ("atime", "mtime", "ctime")

    @property
    def zone(self) -> ZoneInfo | None:
        return zone_of(self.time_zone)


# ---- loading -------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """An exception that was read, with its place and the uid that it is bound to."""

    rule: WhitelistLine
    place: str
    uid: int | None = None

    def expired(self, today: date) -> bool:
        return self.rule.until is not None and date.fromisoformat(self.rule.until) < today


class Policy(NamedTuple):
    """A purge.yaml that was read, with all that it names."""

    file: PurgeFile
    path: str
    #: The whitelist of the administrators.
    exceptions: tuple[Entry, ...] = ()
    #: What owners have in their own lists.
    owned: tuple[Entry, ...] = ()
    #: uids whose own list has faults, with the first one.
    faulty_lists: dict[int, str] = {}
    #: What a reader should know, such as folders of the whitelist that are not there.
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it as a plan keeps it."""
        made: dict[str, Any] = msgspec.to_builtins(
            {
                "file": self.file,
                "path": self.path,
                "exceptions": [list(entry) for entry in self.exceptions],
                "owned": [list(entry) for entry in self.owned],
                "faulty_lists": [[uid, fault] for uid, fault in self.faulty_lists.items()],
                "notes": list(self.notes),
            },
            enc_hook=as_written,
        )
        return made

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> Policy:
        """Return the policy that a plan keeps."""

        def entries(key: str) -> tuple[Entry, ...]:
            kind = list[tuple[WhitelistLine, str, int | None]]
            found = msgspec.convert(record.get(key, []), kind, dec_hook=from_written)
            return tuple(Entry(*entry) for entry in found)

        return cls(
            msgspec.convert(record["file"], PurgeFile, dec_hook=from_written),
            record["path"],
            entries("exceptions"),
            entries("owned"),
            dict(record["faulty_lists"]),
            tuple(record["notes"]),
        )

    @property
    def digest(self) -> str:
        """Tells two policies apart by what administrators say. A folder that is gone is no part of
        it, and neither are lists of owners: see `changed_owners`."""
        said = self.record() | {"notes": [], "owned": [], "faulty_lists": []}
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()

    def changed_owners(self, before: Policy) -> set[int]:
        """Return the uids whose own lists say something else than before. An owner could hold every
        purge back if each change meant a new plan; so it is the owner's own files that stay."""
        now, then = self._by_owner(), before._by_owner()
        return {uid for uid in now.keys() | then.keys() if now.get(uid) != then.get(uid)}

    def _by_owner(self) -> dict[int, list[object]]:
        said: dict[int, list[object]] = {}
        for entry in self.owned:
            said.setdefault(entry.uid or 0, []).append(entry.rule)
        for uid in self.faulty_lists:  # whatever the fault, whose words have paths: all files stay
            said.setdefault(uid, []).append("")
        return said

    def expired(self, now: float) -> list[str]:
        """Return, as one sentence, the lines of whitelists that are over; none where there are
        none."""
        today = self.today(now)
        places = [each.place for each in (*self.exceptions, *self.owned) if each.expired(today)]
        more = " ..." if len(places) > 10 else ""
        return [f"expired: {', '.join(places[:10])}{more}"] if places else []

    def today(self, now: float) -> date:
        return datetime.fromtimestamp(now, self.file.zone).date()

    def faults_now(self, now: float, trials: Path) -> list[str]:
        """Return why nothing may be removed at a time, and until when: by the calendar, and by
        incidents in the notes of the folder of trials. Raises TrialError for notes that cannot be
        read."""
        return [*_by_calendar(self.file, now), *_by_incidents(self.file.calendar, now, trials)]

    def overlap_faults(self) -> list[str]:
        """Return which roots have the same files, as one is mounted below another place."""
        seen: list[tuple[str, tuple[str, str]]] = []
        faults = []
        for root in self.file.roots:
            if (here := _origin(root)) is None:
                continue
            for other, there in seen:
                if here[0] == there[0] and (
                    is_below(here[1], there[1]) or is_below(there[1], here[1])
                ):
                    faults.append(
                        f"{root} and {other} are the same folder, or one in the other, by a bind "
                        "mount; name one"
                    )
            seen.append((root, here))
        return faults

    def mount_faults(self, root: str) -> list[str]:
        """Return why a root is not purged by its mount. Raises OSError."""
        if "atime" in self.file.clocks and "noatime" in mount_options(root):
            return [
                f"{root} is mounted with noatime: files that are read each day look unused; mount "
                "it with relatime, or write `times: [mtime, ctime]` if that is meant"
            ]
        return []


def load_policy(path: Path) -> Policy:
    """Read and check a purge.yaml and what it names. Raises InvalidFiles with all faults,
    UsageError where there is no such file."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; write one (see `seatrial schema purge`)")
    places: list[str] = []

    def check(file: PurgeFile, location: Location) -> None:
        _check(file, location)
        places.extend(_places(location, len(file.whitelist)))

    file = load_checked(path, PurgeFile, check)
    for each in (path, *(path.parent / name for name in file.whitelist_files)):
        _require_own(each)
    entries = [Entry(*each, _uid(each[0])) for each in zip(file.whitelist, places, strict=True)]
    faults: list[str] = []
    for name in file.whitelist_files:
        try:
            entries += load_exceptions(path.parent / name, file.roots)
        except InvalidFiles as error:
            faults += error.faults
    if faults:
        raise InvalidFiles(faults)
    if len(entries) > MAX_EXCEPTIONS:
        text = f"{path}: whitelist: has {len(entries)} lines, more than {MAX_EXCEPTIONS}"
        raise InvalidFiles([f"{text}; use patterns"])
    owned: list[Entry] = []
    faulty: dict[int, str] = {}
    if file.owner_lists:
        owned, faulty = _owner_lists(path.absolute().parent / file.owner_lists, file)
    place = str(path.absolute())
    today = datetime.now(file.zone).date()
    odd = tuple(_notes([*entries, *owned], today))
    return Policy(file, place, tuple(entries), tuple(owned), faulty, odd)


def _require_own(path: Path) -> None:
    """Raise UsageError for a file that others may have written: it says what is removed, and which
    program is run. A missing one is another fault."""
    if path.exists() and (stranger := origin_by(path.stat(), path).stranger):
        raise UsageError(f"{stranger}; a purge goes by files that nobody else can change")


def load_exceptions(path: Path, roots: Sequence[str], owner: int | None = None) -> list[Entry]:
    """Read a list of exceptions; with ``owner`` they hold for that uid alone. Raises
    InvalidFiles."""
    places: list[str] = []

    def check(file: WhitelistFile, location: Location) -> None:
        for i, rule in enumerate(file.whitelist):
            _check_exception(rule, roots, location.inside("whitelist", i))
        places.extend(_places(location, len(file.whitelist)))

    file = load_checked(path, WhitelistFile, check)
    return [
        Entry(rule, place, _uid(rule) if owner is None else owner)
        for rule, place in zip(file.whitelist, places, strict=True)
    ]


def _owner_lists(folder: Path, file: PurgeFile) -> tuple[list[Entry], dict[int, str]]:
    """Return the exceptions that owners have in their own lists, and the uids of lists with
    faults."""
    try:
        paths = sorted(folder.glob("*.yaml"))
        if not folder.is_dir():
            raise NotADirectoryError
    except OSError as error:
        reason = error.strerror or "no such folder"
        raise InvalidFiles(
            [f"{folder}: owner_lists: {reason}; make it, or leave the key out"]
        ) from error
    _require_own(folder)
    entries: list[Entry] = []
    faulty: dict[int, str] = {}
    for path in paths:
        uid = user_id(path.stem)
        if uid is None:
            text = f"{path}: is the list of no user of this host; name it USER.yaml or UID.yaml"
            raise InvalidFiles([text])
        try:
            lines = load_exceptions(path, file.roots, uid)
            if len(lines) > MAX_OWNED:
                raise InvalidFiles([f"{path}: has {len(lines)} lines, more than {MAX_OWNED}"])
            entries += lines
        except (InvalidFiles, OSError) as error:
            faulty[uid] = str(error).splitlines()[0]
    return entries, faulty


def _places(location: Location, number: int) -> Iterator[str]:
    for i in range(number):
        place = location.node.place_of("whitelist", i)
        yield f"{place.path.name}:{place.line}"


def _uid(rule: WhitelistLine) -> int | None:
    return None if rule.owner is None else user_id(rule.owner)


def _notes(entries: Sequence[Entry], today: date) -> Iterator[str]:
    """Yield what is odd about exceptions, and no fault."""
    finder = Finder()
    for entry in entries:
        pattern = entry.rule.pattern
        if entry.expired(today):
            continue
        if pattern != pattern.strip():
            yield f"{entry.place}: {pattern!r} begins or ends with a space, as a name must then"
        if finds(pattern):
            with contextlib.suppress(TooMany):
                found = finder.found(pattern) or finder.found(as_plain(pattern))
                yield from (f"{entry.place}: {note}" for note in _odd(entry.rule, found))


def _odd(rule: WhitelistLine, found: Sequence[Fitting]) -> Iterator[str]:
    """Yield what is odd about what a line fits now."""
    links = [shown_name(each.path) for each in found if stat.S_ISLNK(each.mode)]
    folders = [shown_name(each.path) for each in found if stat.S_ISDIR(each.mode)]
    if rule.folder:
        if not folders:
            what = "fits no folder" if not is_literal(rule.pattern) else "is no folder"
            yield f"{rule.words} {what}; the line protects nothing now"
        if links:
            yield (
                f"{rule.words} fits {count(len(links), 'symbolic link')} ({links[0]}): what is "
                "behind it is not protected; name the folder itself"
            )
        if rule.pattern.endswith("/*"):
            above = rule.pattern.removesuffix("/*")
            yield f"{rule.words} protects no files in {above} itself; write {above} to do so"
        return
    steps = rule.words.count("/")
    if passed := [shown_name(each.path) for each in found if each.path.count(b"/") < steps]:
        yield (
            f"{rule.words} passes a symbolic link ({passed[0]}): what is behind it is not "
            "protected; name the file itself"
        )
    if folders:
        yield (
            f"{rule.words} fits {count(len(folders), 'folder')} ({folders[0]}): as `files` it "
            "protects nothing below; write `folder`"
        )
    elif not found:
        yield f"{rule.words} fits nothing; the line protects nothing now"


# ---- accounts ------------------------------------------------------------------------------------


def user_id(account: Account) -> int | None:
    """Return the uid of a user, by name or number; None if the host does not know the name."""
    return _id(account, lambda name: pwd.getpwnam(name).pw_uid)


def group_id(account: Account) -> int | None:
    """Return the gid of a group, by name or number; None if the host does not know the name."""
    return _id(account, lambda name: grp.getgrnam(name).gr_gid)


def _id(account: Account, look_up: Callable[[str], int]) -> int | None:
    text = str(account).strip()
    if text.isascii() and text.isdigit():
        return int(text) if int(text) < 1 << 32 else None
    try:
        return look_up(text)
    except (KeyError, ValueError):
        return None


# ---- faults --------------------------------------------------------------------------------------


def _check(file: PurgeFile, location: Location) -> None:
    _check_roots(file.roots, location.inside("roots"))
    _check_age(file.age, file, location.inside("age"))
    for key in ("age", "classes", "goal", "whitelist") if file.reformat is not None else ():
        if location.given(key):
            location.fault("means nothing beside `reformat`, which lists every file", key)
    if not (file.age or file.reformat or any(each.age for each in file.classes)):
        location.fault("is missing: nothing would ever be taken; write e.g. 30d", "age")
    _check_classes(file, location)
    for i, rule in enumerate(file.whitelist):
        _check_exception(rule, file.roots, location.inside("whitelist", i))
    owners = location.inside("owners")
    for key in ("only", "exempt"):
        _check_accounts(getattr(file.owners, key), "user", owners.inside(key))
        _check_accounts(getattr(file.owners, f"{key}_groups"), "group",
                        owners.inside(f"{key}_groups"))  # fmt: skip
    if file.caps.bytes is not None and not file.caps.bytes.bytes:
        location.fault(
            "is 0: nothing would ever be taken; leave it out or raise it", "caps", "bytes"
        )
    if file.goal is not None and (file.goal.free is None) == (file.goal.used is None):
        location.fault("needs one of `free` (20%) and `used` (70%)", "goal")
    _check_calendar(file.calendar, location.inside("calendar"))
    if file.warn is not None:
        _check_warn(file.warn, location.inside("warn"))


def _check_roots(roots: Sequence[str], location: Location) -> None:
    if not roots:
        location.fault("is empty; name the folders that are purged, such as [/scratch]")
    for i, root in enumerate(roots):
        for other in roots[:i]:
            if is_below(root, other) or is_below(other, root):
                location.fault(f"{root} and {other} are one inside the other; name one", i)


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or below it, by their names."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _check_age(age: Age | None, file: PurgeFile, location: Location) -> None:
    if age is not None and age.seconds < SHORTEST_AGE and file.short_ages == "refused":
        text = f"{age} is below 2 d, within which atime may not have changed yet (relatime)"
        location.fault(f"{text}; raise it, or say `short_ages: allowed`")


def _check_classes(file: PurgeFile, location: Location) -> None:
    seen: dict[str, int] = {}
    for i, each in enumerate(file.classes):
        at = location.inside("classes", i)
        if each.name in seen:
            at.fault(
                f"{each.name!r} is also classes[{seen[each.name]}]; a name is one class", "name"
            )
        seen.setdefault(each.name, i)
        if (each.age is None) == (not each.keep):
            at.fault("needs one of `age` (such as 14d) and `keep: true`")
        _check_age(each.age, file, at.inside("age"))
        _check_accounts(each.users, "user", at.inside("users"))
        _check_accounts(each.groups, "group", at.inside("groups"))
        for key in ("folders", "files"):
            for j, pattern in enumerate(getattr(each, key)):
                _check_within(pattern, file.roots, at.inside(key, j), folder=key == "folders")
        if each.size.bounds[0] > each.size.bounds[1]:
            at.fault("has no size between its bounds", "size")
        if not (each.folders or each.files or each.users or each.groups) and each.size == Sizes():
            last = i == len(file.classes) - 1
            text = "fits every file: no class after it, nor `age`, is ever reached"
            at.fault(f"{text}; {'write its age as `age`' if last else 'say what it is of'}")


def _check_exception(rule: WhitelistLine, roots: Sequence[str], location: Location) -> None:
    if location.given("folder") == location.given("files"):
        location.fault("needs one of `folder` (/scratch/x) and `files` ('*.sbatch')")
    for key in ("folder", "files"):
        if (pattern := getattr(rule, key)) is not None:
            _check_within(pattern, roots, location.inside(key), folder=key == "folder")
    if rule.owner is not None:
        _check_accounts([rule.owner], "user", location, "owner")


def _check_within(pattern: str, roots: Sequence[str], location: Location, *, folder: bool) -> None:
    """Add a fault for a path outside of the roots, or behind a link: it would do nothing, without a
    word. A link itself can be a file that is named."""
    if not pattern.startswith("/"):
        return
    text = folder_pattern(pattern) if folder else pattern
    start = plain_start(text)
    known = os.fsdecode(start)
    if roots and not any(is_below(known, r) or is_below(r, known or "/") for r in roots):
        fault = f"{pattern} is below none of the roots ({', '.join(roots)})"
        location.fault(f"{fault}; correct the path")
        return
    passed = start if folder or not is_literal(text) else start.rpartition(b"/")[0]
    if passed and (real := os.path.realpath(passed)) != passed and not _is_link_of_user(passed):
        fault = f"{shown_name(passed)} is or passes a symbolic link, so that it fits nothing"
        location.fault(f"{pattern}: {fault}; name the folder itself: {shown_name(real)}")


def _is_link_of_user(path: bytes) -> bool:
    """Return whether the first link on a path belongs to a user. A user could hold every purge back
    by a link in place of a folder that a list names: such a line is told, and is no fault."""
    for end in [i for i, byte in enumerate(path) if i and byte == ord("/")] + [len(path)]:
        with contextlib.suppress(OSError):
            about = os.lstat(path[:end])
            if stat.S_ISLNK(about.st_mode):
                return about.st_uid not in (0, os.geteuid())
    return False


def _check_accounts(
    accounts: Sequence[Account], kind: Literal["user", "group"], location: Location, *key: str
) -> None:
    look_up = user_id if kind == "user" else group_id
    for i, account in enumerate(accounts):
        if look_up(account) is None:
            near = suggest(str(account), _names(kind))
            remedy = near or f"give its {'uid' if kind == 'user' else 'gid'}, if it has no name"
            place = key or (i,)
            location.fault(f"{str(account)[:80]!r} is no {kind} of this host; {remedy}", *place)


def _names(kind: str) -> list[str]:
    if kind == "user":
        return [each.pw_name for each in pwd.getpwall()]
    return [each.gr_name for each in grp.getgrall()]


def _check_calendar(calendar: Calendar, location: Location) -> None:
    for i, freeze in enumerate(calendar.freezes):
        if freeze.end < freeze.start:
            location.fault(f"{freeze.end} is before `from`, {freeze.start}", "freezes", i, "to")


def _check_warn(warn: Warn, location: Location) -> None:
    try:
        warn.address.format(user="a", uid=1)
    except (LookupError, ValueError, AttributeError):
        text = "may have {user} and {uid} alone; write e.g. {user}@example.org"
        location.fault(f"{warn.address!r} {text}", "address")
    for key in ("address", "sender", "nobody", "contact"):
        if any(ord(character) < 32 for character in getattr(warn, key)):
            location.fault("has a line break; write one line", key)
    if warn.command and not Path(warn.command[0]).is_absolute():
        text = f"{warn.command[0]!r} is no absolute path; write e.g. /usr/sbin/sendmail"
        location.fault(text, "command")


# ---- the calendar --------------------------------------------------------------------------------


def _by_calendar(file: PurgeFile, now: float) -> Iterator[str]:
    if reason := _forbidden(file, now):
        then = _next_allowed(file, now)
        until = f"{datetime.fromtimestamp(then, file.zone):%a %Y-%m-%d %H:%M}" if then else ""
        yield f"{reason}; " + (f"allowed from {until} on" if until else "no allowed time is near")


def _by_incidents(calendar: Calendar, now: float, trials: Path) -> Iterator[str]:
    """Yield the incidents of the machine that are not over."""
    moment = round(now * SECOND_NS)
    diary = notes.read(trials / notes.FILE) if calendar.machine else notes.Diary([])
    if diary.damaged:
        yield f"{trials / notes.FILE}: has damaged lines, which may be incidents; mend it"
    for note in diary.of(calendar.machine):
        if note.cause and note.time <= moment < (note.until or FAR_FUTURE_NS):
            yield f"{calendar.machine} has an incident: {note.text} ({note.id}); wait for its end"


def _forbidden(file: PurgeFile, now: float) -> str:
    """Return why nothing may be removed at a time; "" if it may."""
    calendar, local = file.calendar, datetime.fromtimestamp(now, file.zone)
    for freeze in calendar.freezes:
        if freeze.start <= local.date().isoformat() <= freeze.end:
            reason = f" ({freeze.reason})" if freeze.reason else ""
            return f"nothing is removed from {freeze.start} to {freeze.end}{reason}"
    if any(_within(window, calendar.days, local) for window in calendar.hours or [_WHOLE_DAY]):
        return ""
    days = " ".join(calendar.days) or "each day"
    hours = ", ".join(map(str, calendar.hours))
    return f"files are removed on {days}" + (f" at {hours}" if hours else "") + " only"


_WHOLE_DAY = Hours("00:00-00:00")


def _within(window: Hours, days: Sequence[str], local: datetime) -> bool:
    """Return whether a time is in a window. After midnight it is that of the day before."""
    clock = local.time()
    if window.start < window.end:
        inside, began = window.start <= clock < window.end, local
    elif clock >= window.start:
        inside, began = True, local
    else:
        inside, began = clock < window.end, local - timedelta(days=1)
    return inside and (not days or DAYS[began.weekday()] in days)


def _next_allowed(file: PurgeFile, now: float) -> float | None:
    """Return the next time at which files may be removed: at midnight, or as hours begin."""
    today = datetime.fromtimestamp(now, file.zone).date()
    clocks = sorted({time(0), *(window.start for window in file.calendar.hours)})
    for ahead in range(_AHEAD):
        day = today + timedelta(days=ahead)
        for clock in clocks:
            then = datetime.combine(day, clock, file.zone).timestamp()
            if then > now and not _forbidden(file, then):
                return then
    return None


# ---- mounts --------------------------------------------------------------------------------------

_OCTAL = re.compile(rb"\\([0-7]{3})")


class _Mount(NamedTuple):
    """Where a folder is mounted from: a device, and the folder of its file system."""

    device: str
    source: str
    point: str
    options: list[str]


def _mount_of(path: str) -> _Mount | None:
    """Return the mount on which a path without links lies; None where that is not known."""
    try:
        lines = read_start("/proc/self/mountinfo", 1 << 24).data.splitlines()
    except OSError:
        return None
    best: _Mount | None = None
    for words in map(bytes.split, lines):
        device, source, point, options = (
            os.fsdecode(_OCTAL.sub(_byte, words[i])) for i in (2, 3, 4, 5)
        )
        # of equal ones the last counts
        if is_below(path, point) and (best is None or len(point) >= len(best.point)):
            best = _Mount(device, source, point, options.split(","))
    return best


def mount_options(path: str) -> list[str]:
    """Return the options of the mount on which a folder lies; [] where that is not known."""
    mount = _mount_of(os.path.realpath(path))
    return [] if mount is None else mount.options


def is_mounted_below(root: str, path: str) -> bool:
    """Return whether a path, without links, below a root is on a mount that is not entered."""
    mount = _mount_of(path)
    return mount is not None and mount.point != root and is_below(mount.point, root)


def _origin(path: str) -> tuple[str, str] | None:
    """Return the device of a folder, and its path on that; None where that is not known."""
    mount = _mount_of(path)
    if mount is None:
        return None
    return mount.device, str(Path(mount.source) / Path(path).relative_to(mount.point))


def _byte(octal: re.Match[bytes]) -> bytes:
    return bytes([int(octal[1], 8) & 255])
