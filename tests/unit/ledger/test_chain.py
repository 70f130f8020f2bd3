"""Entries are a chain: whatever is done to one of them, or to their order, is found."""

from dataclasses import replace
from random import Random

import pytest

from hushcube.ledger.chain import KINDS, Entry, Head
from hushcube.ledger.checking import verify_snapshot
from hushcube.ledger.ledger import Ledger
from hushcube.ledger.snapshot import Snapshot


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with Ledger.create(tmp_path_factory.mktemp("ledger") / "ledger.db") as ledger:
        ledger.create_account("people", epsilon=4, neighbours="add-remove", partition="year")
        ledger.create_account("2024", parent="people", part="2024")
        for key in "abc":
            ledger.charge("2024", "0.5", key=key, plan_digest="p", data="2024.csv", what=key)
        ledger.begin("a", place="nowhere")
        ledger.publish("a", bundle_digest="d", place="nowhere", spent="0.25")
        ledger.abandon("b", "why not")
        ledger.lock("people")
        return ledger.export()


def holds(snapshot, **options):
    return verify_snapshot(snapshot, **options).holds


def with_entries(whole, entries):
    return replace(whole, entries=tuple(entries))


def test_the_whole_holds(whole):
    assert holds(whole) and whole.entries[0].kind == "ledger"
    assert {entry.kind for entry in whole.entries} == set(KINDS)


def test_every_changed_missing_or_moved_entry_is_found(whole):
    for at, entry in enumerate(whole.entries):
        rest = [*whole.entries[:at], *whole.entries[at + 1 :]]
        assert not holds(with_entries(whole, rest)), f"entry {at + 1} is missing"
        for to in range(len(rest)):
            if to != at:
                assert not holds(with_entries(whole, [*rest[:to], entry, *rest[to:]])), (at, to)
        for field in ("number", "time", "kind", "account", "body", "previous", "hash"):
            value = getattr(entry, field)
            other = value + 1 if field == "number" else value[:-1] + chr(ord((value or "a")[-1]) ^ 1)
            changed = [*whole.entries[:at], replace(entry, **{field: other}), *whole.entries[at + 1 :]]
            assert not holds(with_entries(whole, changed)), (at, field)


def rewritten(entries):
    """A chain with good hashes over whatever is in the entries."""
    made, head = [], None
    for entry in entries:
        made.append(Entry.after(head, entry.time, entry.kind, entry.account, entry.told))
        head = Head(made[-1].number, made[-1].hash)
    return made, head


def test_a_forged_chain_is_found_by_a_noted_head(whole):
    """Whoever can write all of the database can write another history; not one that ends in the same hash."""
    entries, head = rewritten(whole.entries)
    assert tuple(entries) == whole.entries and head == whole.head
    entries, head = rewritten([replace(e, time="1" + e.time[1:]) for e in whole.entries])
    forged = replace(whole, entries=tuple(entries), head=head)
    assert holds(forged) and not holds(forged, head=str(whole.head))


def test_a_chain_that_does_not_follow_itself_is_found(whole):
    """An entry that is intact by itself, with the hash of another one as the one before."""
    last = whole.entries[-1]
    head = Head(last.number - 1, "f" * 64)
    torn = Entry.after(head, last.time, last.kind, last.account, last.told)
    forged = replace(whole, entries=(*whole.entries[:-1], torn), head=Head(torn.number, torn.hash))
    assert torn.is_intact and not holds(forged)


FORGERIES = {
    "spends more than the total": lambda told: {**told, "amount": "5"},
    "settles above what was charged": lambda told: {**told, "spent": "0.75"},
    "settles at nothing": lambda told: {**told, "spent": "0"},
    "ends another charge": lambda told: {**told, "key": "c"} if told["key"] == "b" else {**told, "key": "x"},
    "is for other data": lambda told: {**told, "data": {"source": "b.csv"}},
    "has another total": lambda told: {**told, "total": "5"},
    "draws twice": lambda told: {**told, "key": "b"} if set(told) == {"key", "place"} else told,
    "charges twice": lambda told: {**told, "key": "a"},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_what_no_ledger_would_have_granted_is_found_even_with_good_hashes(whole, forgery):
    for at, entry in enumerate(whole.entries):
        try:
            other = forgery(entry.told)
        except KeyError:
            continue
        if other == entry.told or other.keys() != entry.told.keys():
            continue
        body = Entry.after(None, entry.time, entry.kind, entry.account, other).body
        entries, head = rewritten([*whole.entries[:at], replace(entry, body=body), *whole.entries[at + 1 :]])
        assert not holds(Snapshot(head, tuple(entries), whole.accounts, whole.charges)), (at, other)


def test_a_damaged_entry_is_reported_and_not_raised(whole):
    random = Random(7)
    for _ in range(50):
        at = random.randrange(len(whole.entries))
        body = random.choice(["", "{", "[]", "null", '{"key": 3}', '{"privacy": {}}', '{"amount": "x", "key": "k"}'])
        entries = [*whole.entries[:at], replace(whole.entries[at], body=body), *whole.entries[at + 1 :]]
        assert not holds(with_entries(whole, entries))
