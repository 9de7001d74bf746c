-- The log begins at position 1. A row below it would be outside of the chain, yet in a stream.
-- NOT VALID: a log in which one was forged before can still be served, and `tenure log verify`
-- names it; new rows are judged.

ALTER TABLE log ADD CONSTRAINT log_position_from_one CHECK (position >= 1) NOT VALID;
