"""Relational queries as BSP programs: the SQL application of Jarvis et al. 2002, section 4.

A relation is spread over the processes by rows. Each module has one primitive, a
function of relations that all processes call together:

================== ====================================== ============ =========================
module             SQL                                    supersteps   h of a process, about
================== ====================================== ============ =========================
scan               FROM, of a file or an Arrow table      0 or 1       the distinct strings
filter, project    WHERE, SELECT                          0            0
aggregate          SUM, COUNT, MIN, MAX, AVG              1            p numbers
group_by           GROUP BY                               2            its groups
distinct           SELECT DISTINCT                        2            its distinct rows
equi_join          JOIN USING                             2            its rows, or p times
                                                                       those of the smaller side
sorted_join        the same, even where a value abounds   9            its rows
left_join          LEFT JOIN USING                        2            as equi_join
less_than_join     JOIN ON lesser < greater               3 or 5       p times those of the
                                                                       smaller side
lowest             IN 'low 1%'                            3 or more    p k values, at rank k
order_by           ORDER BY                               7            its rows
rebalance                                                 2            its rows too many
================== ====================================== ============ =========================

Those that sort (``order_by``, ``sorted_join``, and ``group_by`` and ``distinct`` where
they are told to) rest on :mod:`apps.sorting.sample_sort`, and can be told its oversampling factor
and who sorts its sample.

Columns are integers, floats, dates or strings, with NULLs that mean what they mean in
SQL: a comparison with one is unknown, aggregates pass it by, it joins nothing, groups and
duplicates treat it as a value, and it is ordered last unless it is to be first.
:mod:`apps.sql.expression` calculates with columns, and compares them.

The paper prints no schema. This one is ours, and ``python -m apps.sql schema`` shows it::

    ITEM(item, name, class, price, since)   what is sold: the key, and its class and price
    QNT(class, stock, floor)                of each class the stock, and a price
    TRAN(tran, item, day, units)            what was sold when, in the order of days

There is a class for every square root of the number of items. Items are sold by Zipf's
law. The floor of a class is a price that up to 2 m/c of m items exceed, with c classes,
so that the less-than-join of TEMP4 and ITEM has m rows on average and 2 m at most.
:mod:`apps.sql.queries` has the six queries.

``python -m apps.sql run`` evaluates them, ``python -m apps.sql story`` repeats the
paper's story: input that is spread unevenly, then evenly, sorts with too small an
oversampling factor, with the one that theory asks for, and with a sample that all
processes sort together.
"""

from __future__ import annotations

from apps.sql.cli import run as command
from apps.sql.program import main
from apps.sql.reference import reference

__all__ = ["command", "main", "reference"]
"""What tools that take any application look for; primitives are in their modules."""
