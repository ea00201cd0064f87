"""Parts of rule packs as their authors write them, to be put together and spoiled."""

from __future__ import annotations

HEAD = 'title = "T"\nversion = 1\n[[labels]]\nname = "a"\ndefinition = "b"\n'
LAW = '[[laws]]\nid = "act"\ntitle = "An act"\nserial = "lsiSeq 1"\nin_force = 2026-01-02\n'
HOUSE = 'basis = "house"\nnote = "ours"\n'
PHRASE = f'[[phrases]]\nid = "one"\ntexts = ["a mandatory wording of some length"]\nneed = "always"\n{HOUSE}'
STALE = f'[[stale]]\nid = "old"\ntexts = ["what it was before"]\nheld_until = 2025-08-31\ninstead = "one"\n{HOUSE}'
FORBIDDEN = f'[[forbidden]]\nid = "bad"\nwords = ["best"]\n{HOUSE}'
ROOM = '[[verdict.rooms]]\nid = "room"\nwhat = "a reviewer may"\nmay = "conditional"\n'
ROW = '[[verdict.rows]]\nkind = "phrase_missing"\nverdict = "not_met"\nlabel = "reject"\nroom = "room"\n'
ALL = HEAD + LAW + PHRASE + STALE + FORBIDDEN + ROOM + ROW
# Without a doubt, too: every law is used, and the table speaks of every kind.
LAW_RULE = PHRASE.replace('"one"', '"two"').replace("mandatory", "second and quite other sentence")
LAW_RULE = LAW_RULE.replace(HOUSE, 'basis = "law"\nlaw = "act"\narticle = "제22조제3항제3호가목"\n')
ANY_ROW = '[[verdict.rows]]\nkind = "any"\nverdict = "{}"\nlabel = "conditional"\n'
CLEAN = ALL + LAW_RULE + ANY_ROW.format("not_met") + ANY_ROW.format("review")
