"""The record of what was spent: accounts with a total, charges against them, and a chain of all that happened.

A release charges first, draws second and publishes third, and each step is on the disk before the next begins:

    charge      an intent: plan, data, amount, key        the database itself refuses what exceeds the total
    begin       noise is about to be drawn                once for a charge, whatever happens then
    publish     the bundle's digest and place             an adaptive release of a pure account is settled here
    abandon     why nothing was published                 what was charged stays charged

    amounts.py      whole multiples of 10^-15, rounded against ourselves
    account.py      Account: a guarantee, what is spent of it, and whose data it is for
    charge.py       Charge and DataIdentity
    chain.py        Entry: the truth, append-only, each with the hash of the one before
    store.py        what a database must do: transactions, and the tables
    sqlite.py, postgres.py      the two that do
    records.py      what a transaction reads and writes
    ledger.py       Ledger: the verbs
    opening.py      the terms of a new account
    replay.py       accounts and charges recomputed from the entries alone
    snapshot.py     all of a ledger at one moment: what is exported and verified
    checking.py     whether a ledger holds what it claims
    published.py    what a charge was for, looked at again
    sources.py      the names of data
    pages.py        what people see

No row and no exact count comes here.
"""
