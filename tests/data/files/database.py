"""Three transactions of SQLite with a rollback journal, and one with synchronous=OFF.

Run in an empty folder: strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process -o LOG python3 -I -S database.py
"""

import sqlite3

db = sqlite3.connect("t.db")
db.execute("create table t(x)")
db.commit()
for _ in range(2):
    db.execute("insert into t values(1)")
    db.commit()
db.execute("pragma synchronous = off")
db.execute("insert into t values(2)")
db.commit()
db.close()
