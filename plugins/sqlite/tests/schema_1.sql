-- The tables of a file of schema version 1, as they stand in it: what the first release made, and a test must open.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    next INTEGER NOT NULL,            -- n of the next change
    active INTEGER NOT NULL,
    inactive INTEGER NOT NULL,
    vector_epoch INTEGER NOT NULL     -- rises when vectors change without a revision
) STRICT;
CREATE TABLE revisions (
    memory INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    first INTEGER NOT NULL,           -- id of its first change
    PRIMARY KEY (memory, revision)
) WITHOUT ROWID, STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL,
    name TEXT NOT NULL,
    current INTEGER NOT NULL,         -- id of the current version
    version INTEGER NOT NULL,         -- its number
    active INTEGER NOT NULL,
    key INTEGER NOT NULL              -- 64 bits of the source's hash, or of the digest where there is no source
) STRICT;
CREATE UNIQUE INDEX entries_name ON entries (memory, name);
CREATE INDEX entries_key ON entries (memory, key);
CREATE TABLE versions (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    until INTEGER,                    -- the revision that replaced it; NULL: current
    at INTEGER NOT NULL,              -- microseconds since 1970, UTC, as are all times
    occurred INTEGER,
    kind TEXT NOT NULL,
    author TEXT,
    source TEXT,
    digest BLOB NOT NULL,
    occurred_text TEXT,               -- with the offset as it was written
    reason TEXT,
    attributes TEXT,                  -- a JSON object; NULL: none
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_later ON versions (entry, number) WHERE number > 1;
CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    active INTEGER NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT
) STRICT;
CREATE INDEX states_entry ON states (entry, id);
CREATE VIRTUAL TABLE lexical USING fts5(terms, content='', contentless_delete=1, tokenize="ascii tokenchars '!#$%&''()*+,-./:;<=>?@[\]^_`{|}~'");
CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE lexical_terms USING fts5vocab(lexical, 'row');
PRAGMA application_id = 1316112228;
PRAGMA user_version = 1;
